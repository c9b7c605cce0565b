"""Rules of the house that a machine can check: layers, names, nothing of one machine in the tree."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGINES = ("attention", "conv", "oram", "scheduler")


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def path_of(module):
    path = ROOT / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.mark.parametrize("path", modules("hw"), ids=lambda path: str(path.relative_to(ROOT)))
def test_hw_never_imports_sim_and_engines_never_each_other(path):
    own = path.relative_to(ROOT / "hw").parts[0]
    for name in imports(path):
        assert name.split(".")[0] != "sim", f"{path} imports {name}"
        if own in ENGINES and name.startswith("hw."):
            other = name.split(".")[1]
            assert other == own or other not in ENGINES, f"{path} imports {name}"
        if own == "lib" and name.startswith("hw."):
            assert name.split(".")[1] not in ENGINES, f"{path} imports {name}"


@pytest.mark.parametrize("package", ["hw", "sim"])
def test_every_module_imports_and_keeps_its_word(package):
    root = importlib.import_module(package)
    for info in pkgutil.walk_packages(root.__path__, f"{package}."):
        if info.name.startswith("sim.bench."):
            continue  # loaded by cocotb inside the simulator only
        if any(name.split(".")[0] == "ortools" for name in imports(path_of(info.name))):
            # Its libraries and those of HiGHS cannot be in one process.
            subprocess.run([sys.executable, "-c", f"import {info.name}"], cwd=ROOT, check=True)
            continue
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{info.name}.__all__ names {name}"


def test_nothing_of_one_machine_is_in_the_tree():
    machine_path = re.compile(r"[\"' =(]/(root|work|farm|home)/")
    index_host = re.compile(r"(pypi\.|pythonhosted|/simple/|registry\.npmjs)")
    for path in tracked_files():
        if path == Path(__file__):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        for pattern in (machine_path, index_host):
            assert not (found := pattern.search(text)), f"{path}: {found.group()}"


def test_constraints_are_names_versions_and_hashes_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9.-]+==\S+( ; .*?)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_files_stay_small():
    long = {
        str(path.relative_to(ROOT)): lines
        for package in ("hw", "sim", "tests")
        for path in modules(package)
        if (lines := len(path.read_text().splitlines())) > 450
    }
    assert not long
