"""The soak's plugin on a small project: tests that a change reaches, and a stopped run that resumes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.soak.dependencies import Dependencies
from tests.support.soak.plugin import Results, changed_since

ROOT = Path(__file__).resolve().parents[3]
SOAK = "import pytest\n\n@pytest.mark.soak\n@pytest.mark.parametrize('n', range(2))\n"
FILES = {
    "hw/registry.py": 'ENGINES = {\n    "conv": "hw.conv.engine:E",\n    "oram": "hw.oram.engine:E",\n}\n',
    "hw/conv/engine.py": "from hw.conv import cell\n",
    "hw/conv/cell.py": "",
    "hw/oram/engine.py": "",
    "hw/lib/fifo.py": '"""Not `hw.oram.engine`."""\n',
    "sim/engines/conv/adapter.py": "",
    "sim/memory/trace.py": "",
    "sim/memory/dram.cpp": "",
    "tests/data/points.csv": "",
    "tests/conftest.py": "",
    "tests/a/test_fifo.py": f"from hw.lib import fifo\n{SOAK}def test_it(n): pass\n",
    "tests/a/test_conv.py": f"import hw.registry\n{SOAK}def test_it(n): assert 'conv'\n",
    "tests/a/test_all.py": f"from hw.registry import ENGINES\n{SOAK}def test_it(n): pass\n",
    "tests/a/test_memory.py": f"import sim.memory.trace\nF = 'points.csv'\n{SOAK}def test_it(n): assert n\n",
    "docs/conv.md": "",
    "constraints.txt": "",
    "Makefile": "",
    ".gitignore": "build\n__pycache__\n",
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("hw/lib/fifo.py", "fifo"),
        ("hw/conv/cell.py", "conv all"),
        ("sim/engines/conv/adapter.py", "conv all"),
        ("hw/oram/engine.py", "all"),
        ("sim/memory/dram.cpp", "memory"),
        ("tests/data/points.csv", "memory"),
        ("tests/a/test_fifo.py", "fifo"),
        ("docs/conv.md", ""),
        ("tests/conftest.py", "fifo conv all memory"),
        ("constraints.txt", "fifo conv all memory"),
        ("Makefile", "fifo conv all memory"),
        ("hw/lib/gone.py", "fifo conv all memory"),
    ],
)
def test_what_a_change_reaches(project, changed, touched):
    dependencies = Dependencies(project, FILES)
    tests = dependencies.tests
    assert dependencies.touched([changed], tests) == {f"tests/a/test_{name}.py" for name in touched.split()}
    before = {test: dependencies.digest(test) for test in tests}
    if (project / changed).exists():
        (project / changed).write_text("#\n")
        again = Dependencies(project, FILES)
        assert {test for test in tests if again.digest(test) != before[test]} == dependencies.touched(
            [changed], tests
        )


def test_of_this_project():
    dependencies = Dependencies.of(ROOT)
    pointwise = dependencies("tests/hw/conv/core/pointwise/test_cell.py")
    assert "hw/conv/core/pointwise/cell.py" in pointwise
    assert not any(name.startswith(("hw/attention/", "hw/oram/")) for name in pointwise)
    regression = dependencies("tests/regression/test_engines.py")
    assert {"hw/oram/engine.py", "sim/engines/conv/adapter.py", "sim/memory/dram.cpp"} <= regression
    assert {"boards/u55c.yaml", "sim/report/templates/base.html.j2"} <= regression


def soak(project, *options):
    """Run the soak; returns the summary, and the number of tests that ran."""
    environ = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "tests.support.soak.plugin", "-m", "soak"),
        *(
            "--rootdir",
            str(project),
            "-c",
            "/dev/null",
            "--import-mode",
            "importlib",
            "-p",
            "no:cacheprovider",
        ),
        *options,
    ]
    run = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)
    results = project / "build" / "soak" / "results.jsonl"
    entries = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    return run, [entry["test"] for entry in entries if "test" in entry]


def test_a_stopped_soak_goes_on(project):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    commit = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "m"]
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    subprocess.run(commit, cwd=project, check=True)
    run, ran = soak(project, "-x")
    assert run.returncode == 1, run.stdout + run.stderr
    assert "left: 8 tests" in run.stdout
    mended = FILES["tests/a/test_memory.py"].replace("assert n", "pass")
    (project / "tests/a/test_memory.py").write_text(mended)
    run, ran = soak(project)
    # Only tests that had not run, and those of a file that has changed.
    assert (run.returncode, len(ran)) == (0, 9)
    assert ran[-2:] == [f"tests/a/test_memory.py::test_it[{n}]" for n in range(2)]
    run, again = soak(project, "--soak-fresh", "--soak-since", "HEAD")
    assert (run.returncode, again) == (0, [*ran, *ran[-2:]])
    assert "left: 2 tests" in run.stdout
    assert "0 tests never timed" in run.stdout
    with pytest.raises(pytest.UsageError, match=r"^SINCE=none: "):
        changed_since(project, "none")


def test_times_are_listed_slowest_first(tmp_path):
    results = Results(tmp_path / "results.jsonl")
    for test, seconds in (("a.py::t", 40.0), ("b.py::t", 80.0), ("b.py::u", 10.0)):
        results.add(test=test, outcome="passed", seconds=seconds, digest="d")
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"test": "cut sho')
    read = Results.read(tmp_path / "results.jsonl")
    assert (read.passed, read.seconds) == (results.passed, results.seconds)
    lines = [line.strip() for line in read.listing(["a.py::t", "b.py::t", "b.py::u", "c.py::t"], 2)]
    assert lines == [
        "90 s  b.py (2 tests)",
        "80 s  t",
        "40 s  a.py (1 tests)",
        "40 s  t",
        "0 s  c.py (1 tests, 1 never timed)",
        "left: 4 tests, 2 minutes of tests, 1 on 2 workers; 1 tests never timed",
    ]
