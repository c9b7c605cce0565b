"""The library as a distribution of its own: NumPy alone, one version with Loomwork, and old Pythons."""

import ast
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import loomwork_host
from tests.hw.host.conftest import write_vadd
from tests.hw.package.support import FAKES

ROOT = Path(__file__).parents[3]
HOST = ROOT / "hw" / "host"
SOURCES = sorted((HOST / "loomwork_host").glob("*.py"))

#: Runs a launch where no module is found but Python's own, NumPy's, the library's and the stand-in's.
ALONE = """
import importlib.abc, sys
from pathlib import Path

ALLOWED = {*sys.stdlib_module_names, "numpy", "loomwork_host", "pynq"}

class Wall(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] not in ALLOWED:
            raise ImportError(f"{name} is behind the wall")

sys.meta_path.insert(0, Wall())
import numpy as np, loomwork_host
try:
    import pydantic
except ImportError:
    pass
else:
    sys.exit("there is no wall")
with loomwork_host.open("k.bit") as card:
    c = card.load(sys.argv[1]).run(a=np.arange(40, dtype=np.int32), b=np.ones(40, np.int32))["c"]
assert c.tolist() == list(range(1, 41))
print(Path(loomwork_host.__file__).parent, loomwork_host.__version__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel of a copy, which is left as it was otherwise."""
    directory = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
    shutil.copytree(HOST, directory / "host", ignore=ignored)
    options = ("--no-index", "--no-build-isolation", "--no-deps", "--quiet")
    command = [sys.executable, "-m", "pip", "wheel", *options, "-w", str(directory), str(directory / "host")]
    subprocess.run(command, check=True)
    (found,) = directory.glob("*.whl")
    return found


def test_the_wheel_in_an_empty_environment(wheel, vadd, tmp_path):
    """Installed without an index beside NumPy, it executes a launch, and imports nothing else."""
    assert wheel.name == f"loomwork_host-{loomwork_host.__version__}-py3-none-any.whl"
    folder, environment = write_vadd("pynq", tmp_path / "card"), tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    install = ("install", "--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install, wheel], check=True)
    beside = tmp_path / "beside"
    beside.mkdir()
    numpy = Path(np.__file__).parent
    for name in ("numpy", "numpy.libs"):
        if (numpy.parent / name).exists():
            (beside / name).symlink_to(numpy.parent / name)
    (beside / "pynq.py").symlink_to(FAKES / "pynq.py")
    run = subprocess.run(
        [python, "-c", ALONE, str(folder)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(beside), "FAKE_LOG": str(tmp_path / "log")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    place, version = run.stdout.split()
    assert Path(place).is_relative_to(environment)
    assert version == loomwork_host.__version__


def test_one_version_with_loomwork():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert loomwork_host.__version__ == project["version"]


def test_the_oldest_python_reads_the_library():
    project = tomllib.loads((HOST / "pyproject.toml").read_text())["project"]
    oldest = tuple(map(int, project["requires-python"].removeprefix(">=").split(".")))
    assert project["dependencies"] == ["numpy>=1.17"]
    for path in SOURCES:
        ast.parse(path.read_text(), feature_version=oldest)


def test_everything_public_is_there():
    assert len(SOURCES) == 8
    for name in loomwork_host.__all__:
        assert getattr(loomwork_host, name).__doc__


def test_the_page_names_calls_exceptions_and_their_options():
    page = (ROOT / "docs" / "host.md").read_text()
    owners = {"card": loomwork_host.Card, "call": loomwork_host.Call, "launch": loomwork_host.Launch}
    cells = re.findall(r"^\| ((?:`[^`|]+`(?:, )?)+) \| ", page, re.MULTILINE)
    calls = [call for cell in cells for call in re.findall(r"`([^`]+)`", cell)]
    seen = set()
    for call in calls:
        found = re.fullmatch(r"(?:(card|call|launch)\.)?(\w+)(?:\((.*)\))?", call)
        if not found or not (found[1] or found[2] == "open"):
            continue
        function = getattr(owners.get(found[1], loomwork_host), found[2], None)
        if function is None:  # set by each launch
            assert f"self.{found[2]}" in (HOST / "loomwork_host" / "card.py").read_text()
        elif found[3] is not None:
            given = [name.partition("=")[0] for name in found[3].split(", ") if name]
            known = list(inspect.signature(function).parameters)
            assert [name for name in known if name not in ("self", "named")] == given
        seen.add(call)
    assert len(seen) == 11
    errors = set(re.findall(r"`(\w+Error)`", page)) - {"ValueError", "TimeoutError"}
    assert errors == {name for name in loomwork_host.__all__ if name.endswith("Error")}
