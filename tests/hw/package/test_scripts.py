"""The package's scripts, run as far as a machine without Vivado can: Tcl with stub commands, C, Python."""

import ast
import re
import shutil
import subprocess

import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.registry import find_engine
from hw.verilog import generate, write_package

# Every Vivado command is recorded; what returns a value returns one that names its origin.
_STUBS = r"""
set log [open calls.log w]
proc record {args} { global log; puts $log $args; flush $log }
proc stub {name} {
    proc $name {args} "record $name {*}\$args; return \[stub_value $name \$args\]"
}
proc stub_value {name arguments} {
    if {[string match *get_bus_interfaces $name]} { return [lindex $arguments end] }
    if {[string match *get_user_parameters $name]} { return {} }
    if {[string match *add_* $name]} { return "$name-[lindex $arguments 1]" }
    return $name
}
namespace eval ipx {}
foreach name {
    create_project add_files set_property update_compile_order close_project current_fileset get_property
    package_xo current_project get_filesets
    ipx::package_project ipx::unload_core ipx::edit_ip_in_project ipx::current_core ipx::get_user_parameters
    ipx::remove_user_parameter ipx::get_bus_interfaces ipx::infer_bus_interface ipx::associate_bus_interfaces
    ipx::add_bus_parameter ipx::add_memory_map ipx::add_address_block ipx::add_register
    ipx::add_register_parameter ipx::add_field ipx::create_xgui_files ipx::update_checksums
    ipx::check_integrity ipx::save_core ipx::infer_bus_interfaces ipx::add_file_group
} { stub $name }
proc unknown {name args} { error "no such Vivado command in the stubs: $name" }
"""


@pytest.fixture(scope="module", params=["u55c", "zcu104"])
def package(request, tmp_path_factory):
    engine, board = find_engine("attention"), load_board(request.param)
    design = generate(engine, engine.config_type(rows=2), board)
    folder = tmp_path_factory.mktemp(request.param) / "package"
    write_package(design, folder)
    return design, folder


def run_tcl(folder, script, *arguments):
    interpreter = shutil.which("tclsh")
    driver = _STUBS + f"set argv {{{' '.join(arguments)}}}\nset argc {len(arguments)}\n"
    driver += f"set script {{{folder / script}}}\ninfo script $script\nsource $script\n"
    work = folder.parent / script.replace(".", "_")
    work.mkdir(exist_ok=True)
    (work / "driver.tcl").write_text(driver)
    if interpreter is None:
        tkinter = pytest.importorskip("tkinter", reason="neither tclsh nor tkinter is on this machine")
        shell = tkinter.Tcl()
        shell.eval(f"cd {{{work}}}")
        shell.eval(driver)
    else:
        done = subprocess.run(
            [interpreter, "driver.tcl"], cwd=work, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return (work / "calls.log").read_text().splitlines()


def test_tcl_packages_every_port_and_register(package):
    design, folder = package
    if design.board.family == "alveo":
        calls = run_tcl(folder, "gen_xo.tcl", "out.xo")
        packed = [call for call in calls if call.startswith("package_xo ")]
        assert len(packed) == 1
        assert f"-kernel_name {design.top_name}" in packed[0]
        assert any(call.startswith("set_property sdx_kernel true") for call in calls)
    else:
        calls = run_tcl(folder, "package_ip.tcl")
    associated = {
        match[1]
        for call in calls
        if (match := re.match(r"ipx::associate_bus_interfaces -busif (\S+) -clock ap_clk", call))
    }
    assert associated == {"s_axi_control", *(f"m_axi_{port}" for port in design.table.ports)}
    for register in design.table.registers:
        name = register.argument.name
        added = f"ipx::add_register-{name}"
        assert f"ipx::add_register -quiet {name} " in "\n".join(calls)
        offsets = [c for c in calls if c.startswith("set_property address_offset") and c.endswith(added)]
        assert [int(call.split()[2], 16) for call in offsets] == [register.offset]
        assert f"set_property size {register.argument.bits} {added}" in calls
    pointers = [register for register in design.table.registers if register.argument.port]
    values = [call for call in calls if re.match(r"set_property value m_axi_gmem", call)]
    assert [call.split()[2] for call in values] == [f"m_axi_{p.argument.port}" for p in pointers]
    assert any(call.startswith("ipx::save_core") for call in calls)


def test_tcl_stops_without_its_argument(package):
    design, folder = package
    if design.board.family == "alveo":
        with pytest.raises(AssertionError, match=r"takes one argument, the \.xo file to write, not 0"):
            run_tcl(folder, "gen_xo.tcl")


def test_connectivity_names_every_port_once(package):
    design, folder = package
    if design.board.family != "alveo":
        assert not (folder / "connectivity.cfg").exists()
        return
    lines = (folder / "connectivity.cfg").read_text().splitlines()
    placed = dict(
        re.match(rf"sp={design.top_name}_1\.m_axi_(\w+):HBM\[(\d+)\]", line).groups()
        for line in lines
        if line.startswith("sp=")
    )
    assert placed == {port.name: str(port.channel) for port in design.ports}


def test_header_compiles_and_agrees_with_the_table(package, tmp_path):
    design, folder = package
    header = folder / f"{design.top_name}.h"
    text = header.read_text()
    offsets = {int(value, 16) for value in re.findall(r"\b0x([0-9a-fA-F]+)", text)}
    for register in (*design.table.registers, *design.table.counter_registers):
        assert register.offset in offsets
    source = tmp_path / "use.c"
    source.write_text(f'#include "{header}"\nint main(void) {{ return 0; }}\n')
    for compiler in (["gcc", "-std=c99"], ["g++", "-std=c++17", "-x", "c++"]):
        subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", source], check=True)


def test_host_script_is_python(package):
    ast.parse((package[1] / "host.py").read_text())


def test_a_second_package_replaces_the_first(package, tmp_path):
    design, _ = package
    write_package(design, tmp_path / "p")
    (tmp_path / "p" / "mine.txt").write_text("kept")
    write_package(design, tmp_path / "p")
    assert (tmp_path / "p" / "mine.txt").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_a_file_of_the_users_is_not_overwritten(package, tmp_path):
    (tmp_path / "host.py").write_text("mine")
    with pytest.raises(
        InputError, match=r"output directory must be without a host\.py that is not Loomwork's"
    ):
        write_package(package[0], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["host.py"]


def test_a_directory_that_cannot_be_is_refused(package, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="output directory must be writable"):
        write_package(package[0], tmp_path / "file" / "below")
