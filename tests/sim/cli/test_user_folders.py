"""Commands in a folder of the user's that has modules called as ours and as the library's."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import hw
import sim
from hw.board import load_board
from hw.config import config_dict
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.network.cases import SMALL
from sim.run.ahead import built_ahead
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized
from tests.support.sweep.specs import plain, write

ROOT = Path(__file__).resolve().parents[3]
OTHERS = ("sim/__init__.py", "hw/__init__.py", "json.py", "numpy.py", "pickle.py")


@pytest.fixture
def folder(tmp_path):
    """Return a folder with modules that nothing of ours may import."""
    for name in OTHERS:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("raise SystemExit(f'{__name__} of the user is imported')\n")
    return tmp_path


def run(folder, *words):
    program = Path(sys.executable).with_name("loomwork")
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [program, *map(str, words)],
        cwd=folder,
        env=environ | {OPTIMIZE_VARIABLE: "-O0"},  # the simulators of the regression
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_sweep_whose_workers_predict(folder):
    write(folder / "a.yaml", plain())
    assert "of 12 points" in run(folder, "sweep", "a.yaml", "--workers", 1)


def test_a_simulation(folder):
    example = ("--config", ROOT / "examples/attention.yaml", "--input", ROOT / "examples/in.npz")
    run(folder, "sim", "attention", *example, "--output", "out.npz")


@pytest.mark.soak
def test_a_compilation_and_its_simulation(folder):
    net = Builder("small")
    net.output(net.conv(net.input("image", 1, 3, 9, 8), 24, name="first", kernel=3, stride=2))
    (folder / "small.onnx").write_bytes(quantized(net.model()))
    (folder / "small.yaml").write_text(yaml.safe_dump(config_dict(SMALL)))
    run(folder, "compile", "small.onnx", "--config", "small.yaml", "-o", "small")
    run(folder, "predict", "small")


def test_a_solver_beside_the_planner(folder, monkeypatch):
    from hw.scheduler.planner.solvers.cpsat import Worker

    monkeypatch.chdir(folder)
    attempt = {"order": [0], "presolve": False, "conflicts": 1000, "work": 1.0}
    with Worker() as worker:
        answer = worker.pack(
            {"blocks": [[0, 1, 1]], "capacity": 4, "attempts": [attempt], "seconds": 60}, seconds=120
        )
    assert answer


def test_simulators_built_ahead(folder, monkeypatch):
    """As `loomwork demo` orders them: the builder reads its orders until it is ended."""
    monkeypatch.chdir(folder)
    begun = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: begun.append(popen(*a, **k)) or begun[-1])
    with built_ahead(load_board("u55c")), pytest.raises(subprocess.TimeoutExpired):
        begun[0].wait(timeout=3)


def names_of_interpreter(path):
    """Return the lines that name this interpreter."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable":
            yield node.lineno


def test_every_process_of_python_is_begun_in_one_way():
    """`hw.child.python_command`; cocotb's library in a simulator wants the name."""
    named = {
        str(path.relative_to(ROOT))
        for package in (hw, sim)
        for path in Path(package.__path__[0]).rglob("*.py")
        if any(names_of_interpreter(path))
    }
    assert named == {"hw/child.py", "sim/build/testbench.py"}
