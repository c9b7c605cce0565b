"""The script that feeds the rings, against a card that is the golden map: new keys, a wrapping ring."""

import csv
import dataclasses
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hw.board import load_board
from hw.config import config_dict
from hw.design import Design, MemoryPort
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.driver.capacity import hbm_structures, host_structures
from hw.oram.driver.operations import UNVERIFIED
from hw.oram.engine import OramEngine
from hw.package import render
from sim.engines.oram.operations import read_operations
from tests.hw.package.support import build_xrt
from tests.support.oram.dialects import DIALECTS

ENGINE, BOARD = OramEngine(), load_board("u55c")
CONFIG = OramConfig(log_n=8, value_bytes=32, position_ports=4, record_ports=4, interval_cycles=16)
HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]


def package(config):
    """Render the files of a kernel's package beside the Verilog."""
    table = ENGINE.arguments(config, BOARD)
    widths = {"addr_width": 64, "id_width": 1}
    ports = [
        MemoryPort(
            name=name,
            memory="host" if name.startswith("host") else "hbm",
            channel=channel,
            data_width=512 if name.startswith("host") else 256,
            **widths,
        )
        for name, channel in ENGINE.placement(config, BOARD).items()
    ]
    design = Design(
        top_name="loomwork_oram",
        verilog="",
        meta={"engine": "oram", "config_hash": "0" * 12},
        table=table,
        ports=tuple(ports),
        board=BOARD,
        resources=ENGINE.resources(config, BOARD),
        regions=ENGINE.regions(config, BOARD),
        config=config,
        templates=ENGINE.templates,
        bursts_under_way=ENGINE.bursts_under_way,
    )
    return render(design)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_xrt(tmp_path_factory.mktemp("xrt"))


class Host:
    """The script with its operations, and its calls."""

    def __init__(self, directory, library):
        self.directory, self.library = directory, library
        self.script, self.log = directory / "feed.py", directory / "log"
        self.script.write_text(package(CONFIG)["feed.py"])

    def run(self, operations, *options, **environ):
        lines = ["op,key,value", *(",".join(map(str, row)) for row in operations)]
        (self.directory / "ops.csv").write_text("\n".join(lines) + "\n")
        self.log.unlink(missing_ok=True)
        command = [sys.executable, "-W", "error", str(self.script), "k.xclbin"]
        environ = {
            **os.environ,
            "PYTHONPATH": f"{HERE / 'fakes'}:{ROOT}:{ROOT / 'hw' / 'host'}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(self.library),
            "FAKE_LOG": str(self.log),
            "FAKE_REGISTER": "0",
            "FAKE_CONFIG": json.dumps(config_dict(CONFIG)),
            **environ,
        }
        return subprocess.run(
            [*command, "--input", "ops.csv", "--output", "r.csv", "--timeout", "60", *options],
            cwd=self.directory,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def results(self):
        with (self.directory / "r.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def calls(self, name):
        events = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [event[1:] for event in events if event[0] == name]


@pytest.fixture
def host(tmp_path, library):
    return Host(tmp_path, library)


def test_a_ring_goes_around_and_answers_are_those_of_a_dict(host):
    rng, known, operations, expected = random.Random(1), {}, [], []
    for _ in range(40):
        key, value = rng.randrange(9) << 40, rng.getrandbits(256)
        op = rng.choice(["get", "put", "delete"])
        operations.append((op, hex(key), hex(value) if op == "put" else ""))
        before = known.get(key)
        missing = "inserted" if op == "put" else "miss"
        shown = "" if before is None else f"0x{before:064x}"
        expected.append((op, str(key), missing if before is None else "hit", shown))
        if op == "put":
            known[key] = value
        elif op == "delete":
            known.pop(key, None)
    run = host.run(operations, "--ring-slots", "8")
    assert run.returncode == 0, run.stderr
    assert [tuple(row.values()) for row in host.results()] == expected
    assert run.stdout.splitlines()[0].split() == ["cycles_total", "0"]


def test_buffers_and_keys(host):
    keys, epochs = [], []
    for _ in range(2):
        assert host.run([("get", 1, "")]).returncode == 0
        ((call,),) = host.calls("call")
        keys.append([call.pop(f"{name}{n}") for name in ("session_key", "seed") for n in range(4)])
        epochs.append([call.pop(f"epoch{n}") % 2**32 for n in range(2)])
        scalars = {"initialize": 1, "finish": 1, "operation_count": 2, "ring_slots": 1024}
        assert call == scalars | {"poll_cycles": 250, "lock": 1}
    assert not set(keys[0]) & set(keys[1])
    first, second = (low + (high << 32) for low, high in epochs)
    assert first < second < first + 100 * 10**9, "they grow"
    position, records = hbm_structures(CONFIG)
    (pages,) = host_structures(CONFIG)
    sizes = [size for size, *_ in host.calls("bo")]
    ring = 1024 * CONFIG.command_bytes
    assert sizes == [ring, ring, pages.total_bytes, *4 * [position.port_bytes], *4 * [records.port_bytes]]
    assert [flags for _, flags, _ in host.calls("bo")] == 3 * ["host_only"] + 8 * ["normal"]
    assert [group for *_, group in host.calls("bo")] == list(range(16, 27))


def test_the_first_command_is_a_nop_of_its_own(host):
    """The first operation leaves after its response: a ring of many slots has one command until then."""
    assert host.run([("put", n, 7) for n in range(6)]).returncode == 0
    assert host.calls("opened") == [[Code.NOP, True], *[[Code.PUT, True]] * 6]
    assert [row["op"] for row in host.results()] == ["put"] * 6


def test_an_answer_of_somebody_else_is_not_read(host):
    run = host.run([("put", n, 7) for n in range(6)], FAKE_FOREIGN="5")
    assert run.returncode == 1
    assert run.stderr == "tag of response 5 is wrong\n4 of 6 operations were answered; status 0x0\n"
    assert [row["key"] for row in host.results()] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("slots", ["1", "1024"])
def test_a_kernel_with_another_epoch_gets_no_operation(host, slots):
    run = host.run([("put", n, 7) for n in range(6)], "--ring-slots", slots, FAKE_EPOCH="0")
    assert run.returncode == 1
    assert run.stderr == ("response 0 does not confirm the keys: loomwork_oram has another seed or epoch\n")
    assert not (host.directory / "r.csv").exists()
    assert host.calls("opened") == [[Code.NOP, True]]
    assert host.calls("stopped") == [[1]], "it is told to end, and erases its buffers"


def test_a_kernel_with_another_session_key_gets_no_operation(host):
    run = host.run([("put", n, 7) for n in range(6)], FAKE_SESSION="1")
    assert run.returncode == 1
    assert run.stderr == "tag of response 0 is wrong\n0 of 6 operations were answered; status 0x0\n"
    assert host.calls("opened") == [[UNVERIFIED, False]]
    assert host.calls("stopped") == [[1]]


def test_a_kernel_that_stops_loses_no_answer(host):
    run = host.run([("put", n, 7) for n in range(6)], FAKE_ANSWERS="5", FAKE_REGISTER="16")
    assert (run.returncode, run.stderr) == (1, "4 of 6 operations were answered; status 0x10\n")
    assert [row["key"] for row in host.results()] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    "row", [("got", 1, ""), ("get", 1 << 64, ""), ("put", 1, 1 << 256), ("put", "x", 1), ("get", 1)]
)
def test_wrong_operations_are_one_line_and_nothing_runs(host, row):
    run = host.run([("get", 1, ""), row])
    assert run.returncode == 1
    assert run.stderr.startswith("ops.csv, line 3: ")
    assert run.stderr.count("\n") == 1
    assert not host.log.exists()


@pytest.mark.parametrize(
    ("options", "environ", "message"),
    [
        ((), {"PYTHONPATH": ""}, "No module named 'pyxrt': this script needs NumPy, cryptography"),
        ((), {"FAKE_NOT": "gone"}, "XRT cannot load k.xclbin on card 0: gone"),
        (("--input", "none.csv"), {}, "[Errno 2] No such file or directory: 'none.csv'"),
        (("--output", "no/r.csv"), {}, "--output must be a file that can be written, not no/r.csv"),
    ],
)
def test_what_is_missing_is_one_line(host, options, environ, message):
    run = host.run([("get", 1, "")], *options, **environ)
    assert run.returncode == 1
    assert run.stderr.startswith(message)
    assert run.stderr.count("\n") == 1


def test_help_needs_no_library(host):
    run = host.run([], "--help", PYTHONPATH="")
    assert (run.returncode, run.stderr) == (0, "")
    assert "--ring-slots" in run.stdout


READ = dataclasses.replace(CONFIG, value_bytes=16)


@pytest.fixture(scope="module")
def script():
    """Return the names of the script; missing libraries are reported only when it runs."""
    names = {"__name__": "feed"}
    exec(compile(package(READ)["feed.py"], "feed.py", "exec"), names)
    return names


@pytest.mark.parametrize("dialect", DIALECTS)
def test_simulation_and_the_script_read_alike(dialect, script, tmp_path):
    content, expected = DIALECTS[dialect]
    path = tmp_path / "ops.csv"
    path.write_bytes(content)
    read = script["read_operations"]
    if isinstance(expected, list):
        found = read_operations(path, READ)
        values = [int.from_bytes(value.tobytes(), "little") for value in found.values]
        assert list(zip(found.codes.tolist(), found.keys.tolist(), values, strict=True)) == expected
        assert read(str(path)) == expected
        return
    with pytest.raises(InputError) as refused:
        read_operations(path, READ)
    with pytest.raises(SystemExit) as ended:
        read(str(path))
    assert expected in str(refused.value)
    assert str(refused.value).split("; did you mean")[0] == str(ended.value)  # the script has no hint


def test_numbers_are_those_of_the_gates():
    text = package(CONFIG)["feed.py"]
    assert f"CODES = {json.dumps({code.name.lower(): code.value for code in Code})}\n" in text
    statuses = ", ".join(f'"{status.name.lower()}"' for status in Status)
    assert f"STATUSES = ({statuses})\n" in text


@pytest.mark.parametrize("config", [CONFIG, dataclasses.replace(CONFIG, value_bytes=8, key_bits=32)])
def test_the_script_passes_the_linter_of_this_project(config, tmp_path):
    (tmp_path / "feed.py").write_text(package(config)["feed.py"])
    rules = ["--isolated", "--select", "E,F,W,B,UP,SIM", "--line-length", "110"]
    command = [sys.executable, "-m", "ruff", "check", *rules, "feed.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


def test_ports_to_the_host_are_connected_to_its_memory():
    lines = package(CONFIG)["connectivity.cfg"].splitlines()
    assert [line for line in lines if "HOST[0]" in line] == [
        f"sp=loomwork_oram_1.m_axi_host{n}:HOST[0]" for n in (1, 0)
    ]
    assert sum(":HBM[" in line for line in lines) == 8
