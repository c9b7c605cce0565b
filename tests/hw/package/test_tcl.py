"""The Tcl scripts, run with a stand-in for Vivado that sees the Verilog's ports as the packager would."""

from __future__ import annotations

import os
import shutil

import pytest

from hw.lib.arguments import ArgumentKind
from hw.registry import ENGINES
from hw.verilog import write_package
from tests.hw.package import support
from tests.hw.package.support import NASTY, TclError, make_design, nasty, run_tcl
from tests.support.engines import small_design

CONTROL_REGISTERS = {"CTRL": (0x00, 32), "GIER": (0x04, 32), "IP_IER": (0x08, 32), "IP_ISR": (0x0C, 32)}


class Recorded:
    """What a script did, by object."""

    def __init__(self, calls):
        self.calls = calls
        self.names = [call[0] for call in calls]
        self.properties = {}
        for _, name, value, target in (call for call in calls if call[0] == "set_property"):
            self.properties.setdefault(target, {})[name] = value

    def of(self, name):
        return [call[1:] for call in self.calls if call[0] == name]

    def registers(self):
        prefix = "core/map:s_axi_control/block:reg0/register:"
        return {
            target.removeprefix(prefix): values
            for target, values in self.properties.items()
            if target.startswith(prefix) and "/" not in target.removeprefix(prefix)
        }

    def pointers(self):
        end = "/parameter:ASSOCIATED_BUSIF"
        return {
            target.removesuffix(end).rsplit(":", 1)[1]: values["value"]
            for target, values in self.properties.items()
            if target.endswith(end)
        }


@pytest.fixture(scope="module", params=["vadd-u50", "vadd-zcu104", *ENGINES])
def design(request):
    engine, _, board = request.param.partition("-")
    return make_design(board) if board else small_design(engine)


def package(design, tmp_path):
    """Write the package and run its script the way the user would, from another directory."""
    write_package(design, tmp_path / "package")
    work = tmp_path / "work"
    work.mkdir()
    if design.board.family == "alveo":
        return Recorded(run_tcl(tmp_path / "package" / "gen_xo.tcl", work, "build/k.xo")), work
    return Recorded(run_tcl(tmp_path / "package" / "package_ip.tcl", work)), work


@pytest.fixture(scope="module")
def recorded(design, tmp_path_factory):
    return package(design, tmp_path_factory.mktemp("recorded"))[0]


def test_registers_are_those_of_the_table(design, recorded):
    expected = dict(CONTROL_REGISTERS)
    for register in design.table.registers:
        expected[register.argument.name] = (register.offset, register.argument.bits)
    if design.board.family == "zynq":
        for register in design.table.counter_registers:
            expected[register.argument.name] = (register.offset, 64)
    found = {
        name: (int(values["address_offset"], 16), int(values["size"]))
        for name, values in recorded.registers().items()
    }
    assert found == expected
    # Vitis numbers the arguments of a call in this order.
    assert [name for name in found if name in {argument.name for argument in design.table.call}] == [
        argument.name for argument in design.table.call
    ]


def test_pointers_name_their_interface(design, recorded):
    assert recorded.pointers() == {
        argument.name: f"m_axi_{argument.port}"
        for argument in design.table.call
        if argument.kind is ArgumentKind.POINTER
    }


def test_every_interface_has_the_clock(design, recorded):
    buses = [call[1] for call in recorded.of("ipx::associate_bus_interfaces") if call[0] == "-busif"]
    assert buses == ["s_axi_control", *(f"m_axi_{port}" for port in design.table.ports)]
    for call in recorded.of("ipx::associate_bus_interfaces"):
        assert call[call.index("-clock") + 1] == "ap_clk"
        assert call[-1] == "core"
    assert ["-clock", "ap_clk", "-reset", "ap_rst_n", "core"] in recorded.of("ipx::associate_bus_interfaces")


def test_what_the_packager_does_not_infer_is_named(recorded):
    assert recorded.of("ipx::infer_bus_interface") == [
        ["interrupt", "xilinx.com:signal:interrupt_rtl:1.0", "core"]
    ]


def test_parameters_of_interfaces(design, recorded):
    values = {
        target.removeprefix("interface:").replace("/parameter:", "."): settings["value"]
        for target, settings in recorded.properties.items()
        if target.startswith("interface:") and "/parameter:" in target
    }
    expected = {"ap_rst_n.POLARITY": "ACTIVE_LOW", "interrupt.SENSITIVITY": "LEVEL_HIGH"}
    for port in (f"m_axi_{name}" for name in design.table.ports):
        expected |= {f"{port}.HAS_BURST": "0", f"{port}.SUPPORTS_NARROW_BURST": "0"}
        expected[f"{port}.MAX_BURST_LENGTH"] = "16"
        reads, writes = (256, 256) if design.top_name == "loomwork_oram" else (32, 64)
        expected |= {f"{port}.NUM_READ_OUTSTANDING": f"{reads}", f"{port}.NUM_WRITE_OUTSTANDING": f"{writes}"}
    assert values == expected


def test_control_register_has_its_bits(recorded):
    prefix = "core/map:s_axi_control/block:reg0/register:CTRL/field:"
    fields = {
        target.removeprefix(prefix): (values["bit_offset"], values["bit_width"], values["access"])
        for target, values in recorded.properties.items()
        if target.startswith(prefix)
    }
    assert fields == {
        "AP_START": ("0", "1", "read-write"),
        "AP_DONE": ("1", "1", "read-only"),
        "AP_IDLE": ("2", "1", "read-only"),
        "AP_READY": ("3", "1", "read-only"),
        "AUTO_RESTART": ("7", "1", "read-write"),
    }


def test_the_map_belongs_to_the_control_interface(recorded):
    assert recorded.properties["interface:s_axi_control"]["slave_memory_map_ref"] == "s_axi_control"
    assert recorded.properties["core/map:s_axi_control/block:reg0"]["range"] == "4096"


def test_project_is_for_the_part_and_the_kernel(design, recorded):
    (project,) = recorded.of("create_project")
    assert project[project.index("-part") + 1] == design.board.part
    (source,) = recorded.of("add_files")
    assert source[-1].endswith(f"/package/{design.top_name}.v")
    assert recorded.properties["sources_1"]["top"] == design.top_name
    assert recorded.of("ipx::remove_user_parameter") == [["UNWANTED", "core"]]


def test_a_vitis_kernel_is_marked_checked_saved_and_made_an_object(tmp_path):
    recorded, work = package(make_design("u55c"), tmp_path)
    core = recorded.properties["core"]
    assert (core["sdx_kernel"], core["sdx_kernel_type"]) == ("true", "rtl")
    assert recorded.of("ipx::check_integrity") == [["-kernel", "core"]]
    order = ["ipx::package_project", "ipx::update_checksums", "ipx::check_integrity", "ipx::save_core"]
    assert [name for name in recorded.names if name in (*order, "package_xo")] == [*order, "package_xo"]
    (options,) = recorded.of("package_xo")
    options = dict(zip(options[::2], options[1::2], strict=True))
    assert options == {
        "-xo_path": str(work / "build" / "k.xo"),
        "-kernel_name": "loomwork_vadd",
        "-ip_directory": str(work / "packaged_kernel"),
        "-ctrl_protocol": "ap_ctrl_hs",
    }
    root = recorded.of("ipx::package_project")[0]
    assert root[root.index("-root_dir") + 1] == options["-ip_directory"]


def test_a_vivado_ip_is_for_zynq_and_no_kernel(tmp_path):
    recorded, _ = package(make_design("ultra96v2"), tmp_path)
    core = recorded.properties["core"]
    assert "sdx_kernel" not in core
    assert core["supported_families"] == "zynquplus Production"
    assert recorded.of("ipx::check_integrity") == [["core"]]
    assert recorded.names[-1] == "close_project"
    access = {name: values.get("access") for name, values in recorded.registers().items()}
    assert access["cycles_total"] == "read-only"
    assert access["words"] is None


@pytest.mark.parametrize("board", ["u55c", "zcu104"])
def test_no_text_is_ever_substituted(board, tmp_path):
    recorded, _ = package(nasty(make_design(board)), tmp_path)
    registers = recorded.registers()
    assert registers["n"]["description"] == NASTY
    for name in ("p", "q"):
        assert registers[name]["description"] == f"{NASTY}, a multiple of 4096 bytes"


def test_an_interface_the_packager_does_not_find_stops_the_script(design, tmp_path):
    write_package(design, tmp_path / "package")
    verilog = tmp_path / "package" / f"{design.top_name}.v"
    port = f"m_axi_{design.ports[-1].name}"
    verilog.write_text(verilog.read_text().replace(f"{port}_", "m_axi_other_"))
    script = "package_kernel.tcl" if design.board.family == "alveo" else "package_ip.tcl"
    with pytest.raises(TclError, match=f"found 0 interfaces called {port}, not 1"):
        run_tcl(tmp_path / "package" / script, tmp_path)


@pytest.mark.parametrize("arguments", [[], ["a.xo", "b.xo"]])
def test_gen_xo_says_what_it_takes(arguments, tmp_path):
    write_package(make_design("u50"), tmp_path / "package")
    with pytest.raises(TclError, match=rf"takes one argument, the \.xo file to write, not {len(arguments)}"):
        run_tcl(tmp_path / "package" / "gen_xo.tcl", tmp_path, *arguments)


def test_a_command_vivado_does_not_have_is_an_error(tmp_path):
    script = tmp_path / "wrong.tcl"
    script.write_text("ipx::add_regsiter -quiet a b\n")
    with pytest.raises(TclError, match=r'invalid command name "ipx::add_regsiter"'):
        run_tcl(script, tmp_path)


def test_without_tclsh_python_s_own_interpreter_does(tmp_path, monkeypatch):
    pytest.importorskip("tkinter", reason="Python has no Tcl on this machine")
    monkeypatch.setattr(support.shutil, "which", lambda name: None)
    script = tmp_path / "script.tcl"
    script.write_text("create_project $argc [lindex $argv 0]\n")
    here = os.getcwd()
    assert run_tcl(script, tmp_path, "a b") == [["create_project", "1", "a b"]]
    assert os.getcwd() == here
    script.write_text("no_such_command\n")
    with pytest.raises(TclError, match="no_such_command"):
        run_tcl(script, tmp_path)


def test_without_any_tcl_the_test_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "tkinter", None)
    with pytest.raises(pytest.fail.Exception, match="neither tclsh nor Python's tkinter"):
        run_tcl(tmp_path / "script.tcl", tmp_path)


def test_the_kernel_alone_is_read(design, recorded):
    """A model of the device's own cell would be synthesized in its place."""
    assert [call[-1].rsplit("/", 1)[1] for call in recorded.of("add_files")] == [f"{design.top_name}.v"]


def test_what_the_check_of_kernels_asks_for(design, recorded):
    if design.board.family == "alveo":
        assert recorded.properties["core"]["xpm_libraries"] == "XPM_CDC XPM_MEMORY XPM_FIFO"
