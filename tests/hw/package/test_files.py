"""Header, connectivity, Makefile, meta.json, and the directory they are written to."""

from __future__ import annotations

import configparser
import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest

import loomwork_host
from hw.board.resources import Resources
from hw.errors import InputError
from hw.package import render
from hw.verilog import write_package
from tests.hw.package.support import make_design, nasty
from tests.support.engines import small_design

TOP = "loomwork_vadd"


@pytest.fixture(scope="module")
def design():
    return make_design("u55c")


@pytest.fixture(scope="module")
def zynq():
    return make_design("zcu104")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def files_of(directory):
    """Return the files of a folder and of those within it."""
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


# Header


def compile_header(text, checks, compiler, tmp_path):
    """Compile the header with static checks, twice included; gives the compiler's messages."""
    (tmp_path / f"{TOP}.h").write_text(text)
    language, *command = compiler
    source = tmp_path / f"check.{language}"
    assertion = "static_assert" if language == "cpp" else "_Static_assert"
    lines = [f'#include "{TOP}.h"', f'#include "{TOP}.h"']
    lines += [f'{assertion}({check}, "{check}");' for check in checks]
    source.write_text("\n".join(lines) + "\n")
    command += ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


COMPILERS = pytest.mark.parametrize(
    "compiler", [("c", "gcc", "-std=c11"), ("cpp", "g++", "-std=c++17")], ids=["c", "c++"]
)


@COMPILERS
def test_header_says_what_the_table_says(design, compiler, tmp_path):
    prefix = TOP.upper()
    checks = [
        f"{prefix}_ADDR_AP_CTRL == 0 && {prefix}_ADDR_GIE == 4",
        f"{prefix}_ADDR_IER == 8 && {prefix}_ADDR_ISR == 12",
        f"{prefix}_AP_START == 1 && {prefix}_AP_DONE == 2 && {prefix}_AP_IDLE == 4",
        f"{prefix}_AP_READY == 8 && {prefix}_AUTO_RESTART == 128",
        f"sizeof({prefix}_CONFIG_HASH) == 13",
        f"{prefix}_POINTER_ALIGN == 4096 && {prefix}_BURST_BEATS == 16",
        f"{prefix}_READ_BURSTS_OUTSTANDING == 32 && {prefix}_WRITE_BURSTS_OUTSTANDING == 64",
    ]
    for register in design.table.registers:
        name = register.argument.name.upper()
        checks.append(f"{prefix}_ADDR_{name}_DATA == {register.offset}")
        checks.append(f"{prefix}_BITS_{name}_DATA == {register.argument.bits}")
    for register in design.table.counter_registers:
        checks.append(f"{prefix}_ADDR_{register.argument.name.upper()}_COUNTER == {register.offset}")
    text = render(design)[f"{TOP}.h"]
    assert compile_header(text, checks, compiler, tmp_path) == ""
    assert "static assertion failed" in compile_header(
        text, [f"{prefix}_ADDR_A_DATA == 0"], compiler, tmp_path
    )


@COMPILERS
def test_documentation_cannot_end_a_comment(design, compiler, tmp_path):
    assert compile_header(render(nasty(design))[f"{TOP}.h"], ["1 == 1"], compiler, tmp_path) == ""


def test_the_header_is_the_same_on_every_board_but_for_the_hash(design, zynq):
    headers = [render(each)[f"{TOP}.h"].replace(each.config_hash, "") for each in (design, zynq)]
    assert headers[0] == headers[1]


# Vitis


def connectivity(design):
    """Read connectivity.cfg as (key, value) pairs of its one section."""
    parser = configparser.ConfigParser(delimiters=("=",), strict=False)
    lines = render(design)["connectivity.cfg"].splitlines()
    parser.read_string("\n".join(line for line in lines if not line.startswith(("sp=", "nk=", "slr="))))
    assert parser.sections() == ["connectivity"]
    return [tuple(line.split("=", 1)) for line in lines if "=" in line]


@pytest.mark.parametrize("board", ["u55c", "u280", "u50"])
def test_every_port_has_a_channel_the_board_has(board):
    design = make_design(board)
    lines = connectivity(design)
    assert ("nk", f"{TOP}:1:{TOP}_1") in lines
    assert [value for key, value in lines if key == "sp"] == [
        f"{TOP}_1.m_axi_gmem{n}:HBM[{n}]" for n in range(3)
    ]
    assert ("slr", f"{TOP}_1:SLR0") in lines


def test_what_is_too_large_for_one_die_may_go_anywhere(design):
    half = Resources(**{name: count // 2 for name, count in design.board.user.items()})
    assert "slr" not in dict(connectivity(dataclasses.replace(design, resources=half)))


def test_ports_to_ddr_and_to_the_host_have_vitis_s_names():
    board = make_design("u280").board
    ports = tuple(
        dataclasses.replace(port, memory=memory, channel=1 if memory == "ddr" else 0)
        for port, memory in zip(make_design("u280").ports, ("ddr", "host", "hbm"), strict=True)
    )
    assert {memory.name for memory in board.memories} >= {"ddr", "host"}
    design = dataclasses.replace(make_design("u280"), ports=ports)
    assert [value.split(":")[1] for key, value in connectivity(design) if key == "sp"] == [
        "DDR[1]",
        "HOST[0]",
        "HBM[0]",
    ]


def make(directory, *arguments):
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_makefile_goes_from_verilog_to_xclbin(design, tmp_path):
    write_package(design, tmp_path / "p")
    run = make(tmp_path / "p")
    assert run.returncode == 0, run.stderr
    steps = run.stdout.replace("\\\n", " ").splitlines()
    commands = [line for line in steps if line.startswith(("cd ", "v++ "))]
    platform = "--platform xilinx_u55c_gen3x16_xdma_3_202210_1"
    vivado, link, package = commands
    assert "vivado -mode batch -source ../gen_xo.tcl -tclargs loomwork_vadd.xo" in vivado
    for part in ("--link", "--target hw", platform, "--config connectivity.cfg", "--kernel_frequency 300"):
        assert part in link
    assert link.endswith("build/loomwork_vadd.xo")
    for part in ("--package", "--target hw", platform, "--output build/hw/loomwork_vadd.xclbin"):
        assert part in package


def test_makefile_runs_the_host_in_emulation_too(design, tmp_path):
    write_package(design, tmp_path / "p")
    run = make(tmp_path / "p", "run", "TARGET=hw_emu", "LAUNCH=my card")
    assert run.returncode == 0, run.stderr
    assert "emconfigutil --platform" in run.stdout
    host = 'python3 host.py "my card" --xclbin build/hw_emu/loomwork_vadd.xclbin'
    assert run.stdout.strip().endswith(host)


def test_makefile_refuses_another_target(design, tmp_path):
    write_package(design, tmp_path / "p")
    run = make(tmp_path / "p", "TARGET=sw_emu")
    assert run.returncode != 0
    assert "TARGET must be hw or hw_emu, not sw_emu" in run.stderr


@pytest.mark.parametrize(
    ("board", "image"), [("u55c", "hw/loomwork_vadd.xclbin"), ("zcu104", "loomwork_vadd.bit")]
)
def test_the_image_s_configuration_lies_beside_it(board, image, tmp_path):
    """A tool that creates its output stands in for Vitis and Vivado."""
    package, tools = tmp_path / "p", tmp_path / "tools"
    tools.mkdir()
    script = """#!/bin/sh
case "$*" in
*package_ip.tcl*) mkdir -p packaged_ip; touch packaged_ip/component.xml ;;
*block_design.tcl*) touch loomwork_vadd.bit ;;
*gen_xo.tcl*) touch loomwork_vadd.xo ;;
*) while [ "$1" != --output ]; do shift; done; touch "$2"; echo "$3" ;;
esac
"""
    for name in ("v++", "vivado"):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    environ = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    command = ["make", "--no-print-directory", *(["bitstream"] if board == "zcu104" else [])]

    def build():
        run = subprocess.run(command, cwd=package, env=environ, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def beside():
        return json.loads((package / "build" / image).with_name("meta.json").read_text())["config_hash"]

    made = make_design(board)
    write_package(made, package)
    printed = build()
    assert beside() == made.config_hash
    # Of the two prerequisites the linked kernel alone is packaged.
    assert board == "zcu104" or "build/hw/loomwork_vadd.link.xclbin\n" in printed
    write_package(made, package)
    assert "Nothing to be done" in build() or not build().strip()
    other = dataclasses.replace(made, meta=made.meta | {"config_hash": "0" * 12})
    write_package(other, package)
    assert beside() == made.config_hash
    build()
    assert beside() == "0" * 12


# The directory


def test_files_of_each_family(design, zynq, tmp_path):
    common = {f"{TOP}.v", f"{TOP}.h", "host.py", "meta.json", "tb/Makefile", "tb/testbench.py"}
    library = Path(loomwork_host.__file__).parent
    common |= {f"loomwork_host/{path.name}" for path in library.glob("*.py")}
    vitis = {"package_kernel.tcl", "gen_xo.tcl", "connectivity.cfg", "Makefile"}
    paths = write_package(design, tmp_path / "a")
    found = {str(path.relative_to(tmp_path / "a")) for path in paths}
    assert found == set(files_of(tmp_path / "a")) == common | vitis
    write_package(zynq, str(tmp_path / "new" / "b"))
    assert set(files_of(tmp_path / "new" / "b")) == common | {
        "package_ip.tcl",
        "block_design.tcl",
        "Makefile",
    }


def test_meta_lists_the_files_and_ends_the_package(design, tmp_path):
    write_package(design, tmp_path / "p")
    meta = json.loads((tmp_path / "p" / "meta.json").read_text())
    assert sorted(meta.pop("files")) == files_of(tmp_path / "p")
    assert meta == json.loads(json.dumps(design.meta))


def test_all_of_it_is_readable_by_others(design, tmp_path):
    write_package(design, tmp_path / "p")
    plain = tmp_path / "plain"
    plain.mkdir()
    assert (tmp_path / "p").stat().st_mode == plain.stat().st_mode
    (plain / "file").write_text("")
    assert (tmp_path / "p" / "tb").stat().st_mode == plain.stat().st_mode
    modes = {(tmp_path / "p" / name).stat().st_mode for name in files_of(tmp_path / "p")}
    assert modes == {(plain / "file").stat().st_mode}


def test_a_second_package_replaces_the_first_and_nothing_else(design, zynq, tmp_path):
    directory = tmp_path / "p"
    write_package(design, directory)
    (directory / "build").mkdir()
    (directory / "build" / "days_of_work.xclbin").write_text("")
    (directory / "notes.txt").write_text("mine")
    (directory / "tb" / "test_mine.py").write_text("")
    write_package(zynq, directory)
    expected = {"build/days_of_work.xclbin", "notes.txt", "tb/test_mine.py", *render(zynq)}
    assert set(files_of(directory)) == expected
    assert (directory / "meta.json").read_text() == render(zynq)["meta.json"]
    assert names(tmp_path) == ["p"]


def test_an_equal_file_is_left_untouched(design, tmp_path):
    directory, day = tmp_path / "p", 86_400 * 10**9
    write_package(design, directory)
    for name in files_of(directory):
        os.utime(directory / name, ns=(day, day))
    linked = tmp_path / "elsewhere"
    (directory / "host.py").rename(linked)
    (directory / "host.py").symlink_to(linked)
    (directory / "connectivity.cfg").write_text("[connectivity]\n")
    os.utime(directory / "connectivity.cfg", ns=(day, day))
    write_package(design, directory)
    fresh = {name for name in files_of(directory) if (directory / name).lstat().st_mtime_ns != day}
    assert fresh == {"connectivity.cfg", "host.py"}
    assert not (directory / "host.py").is_symlink()
    assert {name: (directory / name).read_text() for name in files_of(directory)} == render(design)


def test_a_file_of_the_user_s_is_never_overwritten(design, tmp_path):
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(
        InputError, match="output directory must be without a Makefile that is not Loomwork's"
    ):
        write_package(design, tmp_path)
    assert names(tmp_path) == ["Makefile"]


@pytest.mark.parametrize("meta", ["", "[]", "{}", '{"kernel": 1, "files": 3}', '{"files": ["Makefile"]}'])
def test_another_s_meta_json_gives_no_right_to_overwrite(design, tmp_path, meta):
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "meta.json").write_text(meta)
    with pytest.raises(InputError, match="that is not Loomwork's"):
        write_package(design, tmp_path)


def test_a_meta_json_cannot_reach_outside(design, tmp_path):
    (tmp_path / "victim").write_text("mine")
    directory = tmp_path / "p"
    write_package(design, directory)
    meta = json.loads((directory / "meta.json").read_text())
    meta["files"].append("../victim")
    (directory / "meta.json").write_text(json.dumps(meta))
    write_package(design, directory)
    assert (tmp_path / "victim").read_text() == "mine"


def test_what_cannot_be_written_is_one_error(design, tmp_path):
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "file", tmp_path / "file" / "p", Path("/proc/no/p")):
        with pytest.raises(InputError, match=r"output directory must be writable \(.*\), not "):
            write_package(design, directory)
    assert names(tmp_path) == ["file"]


def test_an_interrupted_write_leaves_the_earlier_package(design, tmp_path, monkeypatch):
    directory = tmp_path / "p"
    write_package(design, directory)
    before = {name: (directory / name).read_text() for name in files_of(directory)}
    written = []

    def full(path, text, **_):
        if len(written) == 2:
            raise OSError(28, os.strerror(28))
        written.append(path)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_package(design, directory)
    assert {name: (directory / name).read_text() for name in files_of(directory)} == before
    assert names(tmp_path) == ["p"]


def test_a_model_of_the_device_s_cell_lies_beside_the_kernel_that_places_it():
    files = render(small_design("attention"))
    assert "module DSP48E2 " in files["DSP48E2.v"]
    assert "DSP48E2.v" in json.loads(files["meta.json"])["files"]
    assert "DSP48E2.v" not in render(small_design("scheduler"))
