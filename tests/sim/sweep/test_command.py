"""``loomwork sweep``: what is printed, and refusals of one line."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
import yaml

from sim.host.tree import tree
from sim.sweep.input.spec_file import read_spec
from sim.sweep.space import Space
from sim.sweep.spec import WorkloadSpec
from sim.sweep.task import Task, legal_config
from tests.support.command_line import call, refused
from tests.support.sweep.specs import plain, write

ROOT = Path(__file__).parents[3]


def test_the_front_is_printed_and_a_second_run_prints_the_same(tmp_path):
    words = ("sweep", write(tmp_path / "a.yaml", plain()), "-o", tmp_path / "a.db", "--workers", 1)
    first = call(*words).stdout
    assert "of 12 points" in first
    assert "merge_lanes must be a power of two" in first
    assert first.endswith(f"{tmp_path / 'a.db'}\n")
    assert call(*words).stdout == first


@pytest.mark.parametrize(
    ("change", "words", "says"),
    [
        (
            {"constraints": ["rows > 9"]},
            (),
            "constraints must be such that a design keeps them, not 'rows > 9'",
        ),
        ({"constraints": ["colour > 9"]}, (), "constraints.0 must be an expression over attention.bram36, "),
        ({}, ("-o", "missing/a.db"), "--output must be in a directory that exists"),
        ({}, ("-o", "/proc/a.db"), "--output must be writable"),
        ({}, ("-o", "a.yaml"), "--output must be another file than SPEC"),
        ({}, ("--address", "localhost:1"), "--address must be left out without --executor ray"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, monkeypatch, change, words, says):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.yaml", plain(**change))
    assert says in refused("sweep", "a.yaml", *words)


def test_a_database_of_another_version_is_refused(tmp_path):
    import sqlite3

    spec = write(tmp_path / "a.yaml", plain())
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE sweep (name TEXT, value TEXT)")
        connection.execute("INSERT INTO sweep VALUES ('format', 'loomwork-sweep-0')")
    assert "another version of Loomwork wrote it" in refused("sweep", spec, "-o", tmp_path / "a.db")


def test_a_cluster_that_is_not_there_is_refused(tmp_path):
    pytest.importorskip("ray")
    spec = write(tmp_path / "a.yaml", plain())
    words = ("sweep", spec, "-o", tmp_path / "a.db", "--executor", "ray", "--address")
    assert "that of a Ray cluster that runs (" in refused(*words, "localhost:1")
    assert "(it is written HOST:PORT)" in refused(*words, "nowhere")


@pytest.mark.parametrize("name", ["attention", "conv", "joint", "engines"])
def test_examples_are_legal(name):
    space = Space(read_spec(ROOT / "examples" / "sweeps" / f"{name}.yaml"))
    assert space.allowed(space.drawn(1, seed=0)[0])


def test_the_file_of_the_page_is_legal(tmp_path):
    page = (ROOT / "docs" / "sweep.md").read_text()
    (tmp_path / "a.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    read_spec(tmp_path / "a.yaml")


@pytest.mark.soak
@pytest.mark.parametrize("name", ["attention", "conv", "joint", "engines"])
def test_examples_are_swept(tmp_path, name):
    """Predictions alone: what simulation adds is shown by smaller sweeps."""
    folder = shutil.copytree(ROOT / "examples" / "sweeps", tmp_path / "examples" / "sweeps")
    path = folder / f"{name}.yaml"
    document = yaml.safe_load(path.read_text().replace("../../sim", str(ROOT / "sim")))
    document.pop("fidelities", None)
    call("sweep", write(path, document), "-o", tmp_path / "a.db")


@pytest.mark.soak
def test_a_ray_cluster_gives_the_same(tmp_path):
    pytest.importorskip("ray")
    spec = write(tmp_path / "a.yaml", plain())
    here = call("sweep", spec, "-o", tmp_path / "here.db", "--workers", 1).stdout
    there = call("sweep", spec, "-o", tmp_path / "there.db", "--executor", "ray").stdout
    assert there.replace("there.db", "here.db") == here


@pytest.mark.soak
def test_a_worker_of_a_ray_cluster_that_is_killed_is_told_of(tmp_path):
    pytest.importorskip("ray")
    from sim.sweep.ray_executor import RayExecutor

    executor = RayExecutor("", slots=1, memory_bytes=0)
    config = legal_config("attention", "ultra96v2", {"rows": 1})
    # A minute of predictions.
    shape = {
        "heads": 64,
        "queries": [4096],
        "keys": [4096],
        "query_size": 32,
        "value_size": 32,
        "causal": True,
    }
    given = {"engine": "attention", "board": "ultra96v2", "config": config, "workload": "long"}
    task = Task(fidelity="prediction", asked=WorkloadSpec(shape=shape), **given)
    executor.submit([task])
    ends = time.monotonic() + 60
    while not (found := [one for one in tree(os.getpid()) if is_at_work(one.pid)]):
        assert time.monotonic() < ends
        time.sleep(0.05)
    os.kill(found[0].pid, signal.SIGKILL)
    answers = []
    while not answers:
        answers = executor.answered(1.0)
    assert answers[0].death.startswith("its process on the cluster ended (")
    assert list(answers[0].tasks) == [task]
    executor.close()


def is_at_work(pid):
    try:
        return b"ray::_look_all" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
