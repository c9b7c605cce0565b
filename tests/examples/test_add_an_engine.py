"""`docs/add-an-engine.md` followed word for word in a copy: the engine passes the tests of the house."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Longer than the page's, so that lines must be formatted anew.
NAME = "vector_sum"
#: Tests of every engine of the registry that need no simulator.
TESTS = (
    "tests/test_house.py::test_modules_keep_to_the_doors",
    "tests/test_house.py::test_no_folder_has_to_be_scrolled",
    "tests/hw/test_config.py",
    "tests/hw/board/test_regions.py",
    "tests/regression/test_metrics.py",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the repository in which the page's first step was taken, and the files it made."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("hw", "sim", "examples", "boards", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, root)
    (root / ".venv").symlink_to(Path(sys.prefix))
    before = {path: path.read_bytes() for path in root.glob("[hs]*/**/*") if path.is_file()}
    page = (ROOT / "docs" / "add-an-engine.md").read_text().replace("vsum", NAME).replace("Vsum", "VectorSum")
    (steps,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    subprocess.run(["bash", "-euc", steps], cwd=root, check=True)
    after = {path: path.read_bytes() for path in root.glob("[hs]*/**/*") if path.is_file()}
    changed = {str(path.relative_to(root)) for path in after if after[path] != before.get(path)}
    return root, changed


def python(root, *arguments):
    """Run Python in the copy; returns what it printed."""
    environ = os.environ | {"PYTHONPATH": str(root)}
    run = subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_two_folders_and_one_line_change(copy):
    root, changed = copy
    assert changed == {
        "hw/registry.py",
        *(f"hw/{NAME}/{name}.py" for name in ("__init__", "engine")),
        *(f"sim/engines/{NAME}/{name}.py" for name in ("__init__", "adapter")),
    }
    python(root, "-m", "ruff", "check", "hw", f"sim/engines/{NAME}")
    python(root, "-m", "ruff", "format", "--check", "hw", f"sim/engines/{NAME}")


def test_the_command_line_knows_it(copy):
    root, _ = copy
    tensors = {name: np.arange(5, dtype=np.int32) for name in "ab"}
    np.savez(root / "in.npz", **tensors)
    script = "\n".join(
        (
            "from typer.testing import CliRunner",
            "from sim.cli.main import app",
            "def call(*words):",
            "    print(CliRunner().invoke(app, words, catch_exceptions=False).output)",
            "call('engines')",
            f"call('verilog', '--engine', '{NAME}', '--board', 'zcu104', '--output', 'v')",
            f"call('sim', '{NAME}', '--input', 'in.npz', '--output', 'out.npz', '--backend', 'golden')",
        )
    )
    assert f" {NAME} " in python(root, "-c", script)
    assert f"module loomwork_{NAME}(" in (root / "v" / f"loomwork_{NAME}.v").read_text()
    assert json.loads((root / "v" / "meta.json").read_text())["engine"] == NAME
    assert np.load(root / "out.npz")["c"].tolist() == [0, 2, 4, 6, 8]


def test_it_passes_the_tests_of_every_engine(copy):
    root, _ = copy
    words = " or ".join((NAME, "scrolled", "figures"))
    printed = python(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", words, *TESTS)
    passed = int(re.search(r"(\d+) passed", printed)[1])
    # Doors of four modules, two packages' folders, a configuration, regions on five boards, figures.
    assert passed >= 13
