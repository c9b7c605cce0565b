"""``loomwork sweep``: what is printed, and refusals of one line."""

import shutil
from pathlib import Path

import pytest
import yaml

from sim.sweep.space import Space
from sim.sweep.spec import read_spec
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
