"""``loomwork sim oram``: files of operations in, files of results, labels and accesses out."""

from pathlib import Path

import numpy as np
import pytest

from sim.engines.oram.adapter import ADAPTER
from sim.memory.trace import TRANSFER, Channel
from sim.run.result import RunResult
from tests.support.command_line import call, refused

OPERATIONS = "op,key,value\nput,7,0x1234\nput,9,5\nget,7,\ndelete,9,\nget,9,\nload,8,1\nput,7,6\n"
RESULTS = [
    "op,key,status,value",
    "put,7,inserted,",
    "put,9,inserted,",
    "get,7,hit,0x0000000000001234",
    "delete,9,hit,0x0000000000000005",
    "get,9,miss,",
    "load,8,inserted,",
    "put,7,hit,0x0000000000001234",
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ops.csv").write_text(OPERATIONS)
    Path("c.yaml").write_text("log_n: 8\n")


def sim(*words):
    return ("sim", "oram", "--config", "c.yaml", "--ops", "ops.csv", *words)


def test_the_golden_map_answers():
    shown = call(*sim("--backend", "golden", "--output", "r.csv", "--labels", "l.csv")).stdout
    assert shown.split() == ["r.csv", "l.csv"]
    assert Path("r.csv").read_text().splitlines() == RESULTS
    header, *labels = Path("l.csv").read_text().splitlines()
    assert header == "labels"
    assert [label == "" for label in labels] == [False] * 5 + [True, False]
    assert all(0 <= int(label) < 32 for label in labels if label)
    call(*sim("--backend", "golden", "--output", "s.csv", "--labels", "m.csv", "--seed", "5"))
    assert Path("s.csv").read_text() == Path("r.csv").read_text()
    assert Path("m.csv").read_text() != Path("l.csv").read_text(), "other keys, other labels"


def test_the_bus_trace_is_that_of_the_hosts_memory(monkeypatch):
    def run(engine, config, board, tensors, *, directory, traces, **options):
        assert list(traces) == ["host"]
        # The table of arguments names the port of the rings before the port of the pages.
        transfers = [(3, 0x1000, 64, 0, Channel.AR, 0), (9, 0x1000, 64, 0, Channel.R, 0)]
        traces["host"].parent.mkdir(parents=True)
        np.array([*transfers, (10, 0x2000, 256, 1, Channel.AW, 0)], TRANSFER).tofile(traces["host"])
        job = ADAPTER.job(tensors, config)
        golden = ADAPTER.golden(job, config)
        return RunResult(
            outputs=ADAPTER.results(job, config, golden), integers=golden, golden=golden, job=job
        )

    monkeypatch.setattr("sim.run.run.run", run)
    shown = call(*sim("--trace", "bus.csv", "--output", "r.csv")).stdout
    assert shown.split() == ["bus.csv", "r.csv"]
    assert Path("bus.csv").read_text().splitlines() == [
        "cycle,port,direction,address,bytes",
        "3,host1,read,0x1000,64",
        "10,host0,write,0x2000,256",
    ]
    assert Path("r.csv").read_text().splitlines() == RESULTS
    assert not Path("build/run").exists() or not any(Path("build/run").iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (sim("--backend", "golden", "--trace", "t.csv"), "--trace must be left out with --backend golden"),
        (sim("--labels", "ops.csv"), "--labels must be another file than --ops"),
        (sim("--trace", "no/t.csv"), "--trace must be in a directory that exists"),
        (("sim", "oram", "--ops", "none.csv"), "--ops must be a file that exists"),
        (("sim", "oram", "--labels", "l.csv"), "--labels must be left out without --ops"),
        (("sim", "attention", "--ops", "ops.csv"), "--ops must be left out: the engine attention has no"),
        (("sim", "attention", "--trace", "t.csv"), "--trace must be left out: the engine attention has no"),
        (
            ("sim", "oram"),
            "tensors must be such that codes is among them, or operations by --ops, not 'none'",
        ),
    ],
)
def test_wrong_options_are_refused_before_any_work(words, message, monkeypatch):
    monkeypatch.setattr("sim.build.design.kernel_design", None)
    assert refused(*words).startswith(message)


def test_wrong_lines_and_tables_are_named():
    Path("ops.csv").write_text("op,key,value\nget,7,\nput,x,1\n")
    assert refused(*sim()) == (
        "ops.csv, line 3: key must be a whole number below 2^64, decimal or behind 0x, not 'x'"
    )
    Path("c.yaml").write_text("log_n: 8\nalpha: 1.5\n")
    assert "alpha must be from 0 to less than 1" in refused(*sim())
