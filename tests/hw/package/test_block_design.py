"""Block designs of Zynq boards, run with a stand-in for Vivado that knows what a design must have."""

import dataclasses
import subprocess

import pytest

from hw.design import MemoryPort
from hw.package.context import context
from hw.registry import find_engine
from hw.verilog import write_package
from tests.hw.package.support import TclError, make_design, run_tcl


class Made:
    """A package on a board, and what its block design script called."""

    def __init__(self, design, directory):
        self.design, self.package, self.work = design, directory / "package", directory / "package" / "build"
        write_package(design, self.package)
        (self.work / "packaged_ip").mkdir(parents=True)
        (self.work / "packaged_ip" / "component.xml").touch()

    def run(self, *arguments, **settings):
        interfaces = " ".join(["s_axi_control", *(f"m_axi_{port.name}" for port in self.design.ports)])
        script = self.package / "block_design.tcl"
        return run_tcl(script, self.work, *arguments, **{"kernel_interfaces": interfaces, **settings})


@pytest.fixture(params=["zcu104", "ultra96v2", "kv260", "aupzu3"])
def made(request, tmp_path):
    return Made(make_design(request.param), tmp_path)


def of(calls, name):
    return [call[1:] for call in calls if call[0] == name]


def test_every_port_has_its_way_to_memory_and_one_clock(made):
    board, calls = made.design.board, made.run("150", "8")
    (project,) = of(calls, "create_project")
    assert project[project.index("-part") + 1] == board.part
    settings = {target: value for name, value, target in of(calls, "set_property") if name == "board_part"}
    vendor, name = settings["project"].split(":")[:2]
    assert board.board_part in (None, f"{vendor}:{name}")
    assert name == (board.name if board.board_part is None else board.board_part.split(":")[1])
    buses = of(calls, "connect_bd_intf_net")
    assert ["ps/M_AXI_HPM0_FPD", "control/S00_AXI"] in buses
    assert ["control/M00_AXI", "kernel/s_axi_control"] in buses
    for number, port in enumerate(made.design.ports):
        assert [f"kernel/m_axi_{port.name}", f"memory{number}/S00_AXI"] in buses
        assert [f"memory{number}/M00_AXI", f"ps/S_AXI_HP{number}_FPD"] in buses
    nets = dict(reversed(pair) for pair in of(calls, "connect_bd_net"))
    clocks = {name: source for name, source in nets.items() if name.endswith(("clk", "slowest_sync_clk"))}
    assert set(clocks.values()) == {"clock/clk_out1"}
    assert nets["clock/clk_in1"] == "ps/pl_clk0"
    assert (nets["kernel/ap_rst_n"], nets["ps/pl_ps_irq0"]) == (
        "reset/peripheral_aresetn",
        "kernel/interrupt",
    )
    parameters = dict(reversed(call[1:]) for call in of(calls, "set_property") if call[0] == "-dict")
    assert "CONFIG.CLKOUT1_REQUESTED_OUT_FREQ 150" in parameters["clock"]
    assert f"CONFIG.PSU__SAXIGP2__DATA_WIDTH {board.memory.port_data_width}" in parameters["ps"]
    addresses = of(calls, "assign_bd_address")
    assert addresses[0] == [
        "-offset", "0xa0000000", "-range", "4096",
        "-target_address_space", "ps/Data", "kernel/s_axi_control/reg0",
    ]  # fmt: skip
    assert [call[1:] for call in addresses[1:]] == [
        [f"kernel/m_axi_{port.name}", f"ps/SAXIGP{number + 2}/HP{number}_DDR_LOW"]
        for number, port in enumerate(made.design.ports)
    ]
    assert of(calls, "launch_runs") == [["impl_1", "-to_step", "write_bitstream", "-jobs", "8"]]
    names = [call[0] for call in calls]
    order = ["validate_bd_design", "save_bd_design", "make_wrapper", "launch_runs", "wait_on_run"]
    assert [name for name in names if name in order] == order
    assert (made.work / "loomwork_vadd.bit").read_text() == "bits"
    assert (made.work / "loomwork_vadd.hwh").read_text() == "handoff"


@pytest.mark.parametrize("engine", ["attention", "conv", "scheduler"])
def test_every_engine_that_fits_has_one(engine, tmp_path):
    found, board = find_engine(engine), make_design("zcu104").board
    config = found.default_config(board)
    ports = tuple(
        MemoryPort(name=name, data_width=128, addr_width=64, id_width=1, memory=board.memory.name, channel=0)
        for name in found.arguments(config, board).ports
    )
    design = dataclasses.replace(
        make_design("zcu104"),
        ports=ports,
        table=found.arguments(config, board),
        top_name=f"loomwork_{engine}",
    )
    made = Made(design, tmp_path)
    joined = {pair[0] for pair in of(made.run("100", "1"), "connect_bd_intf_net")}
    assert {f"kernel/m_axi_{port.name}" for port in ports} <= joined


def test_more_ports_than_the_processing_system_has_share():
    port = make_design("zcu104").ports[0]
    ports = tuple(dataclasses.replace(port, name=f"gmem{n}") for n in range(6))
    design = dataclasses.replace(make_design("zcu104"), ports=ports)
    assert context(design)["high_performance"] == [
        (0, ["m_axi_gmem0", "m_axi_gmem4"]),
        (1, ["m_axi_gmem1", "m_axi_gmem5"]),
        (2, ["m_axi_gmem2"]),
        (3, ["m_axi_gmem3"]),
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"progress": "50%"}, "no bitstream: route_design ERROR; the log is in block_project/impl_1"),
        ({"slack": "-0.25"}, r"timing fails at 150 MHz: setup \(WNS -0.25 ns\); a slower clock helps"),
        ({"hold_slack": "-0.02"}, r"timing fails at 150 MHz: hold \(WHS -0.02 ns\); "),
        (
            {"hold_slack": "-0.02", "pulse_slack": "-0.3"},
            r"150 MHz: hold \(WHS -0.02 ns\), pulse width \(TPWS -0.3 ns\); ",
        ),
        ({"board_parts": ""}, "Vivado knows 0 boards called zcu104, not 1: its board files come from"),
        ({"kernel_interfaces": "s_axi_control m_axi_gmem0"}, "no pin kernel/m_axi_gmem1"),
    ],
)
def test_what_stops_it_and_leaves_no_bitstream(settings, message, tmp_path):
    made = Made(make_design("zcu104"), tmp_path)
    with pytest.raises(TclError, match=message):
        made.run("150", "1", **settings)
    assert not (made.work / "loomwork_vadd.bit").exists()


def test_it_says_what_it_takes_and_needs(tmp_path):
    made = Made(make_design("zcu104"), tmp_path)
    with pytest.raises(
        TclError, match=r"takes two arguments, the clock in MHz and the number of jobs, not 1"
    ):
        made.run("150")
    (made.work / "packaged_ip" / "component.xml").unlink()
    with pytest.raises(TclError, match=r"packaged_ip is not there: package_ip\.tcl makes it"):
        made.run("150", "1")


@pytest.mark.parametrize(
    ("whole", "broken", "message"),
    [
        ("loomwork::wire kernel/interrupt ps/pl_ps_irq0", "", "ps/pl_ps_irq0 is not driven"),
        ("memory1/aclk ", "", "memory1/aclk is not driven"),
        ("kernel/ap_rst_n ", "", "kernel/ap_rst_n is not driven"),
        (
            "PSU__USE__S_AXI_GP3",
            "PSU__USE__S_AXI_GP9",
            "zynq_ultra_ps_e has no parameter PSU__USE__S_AXI_GP9",
        ),
        ("CONFIG.PSU__USE__S_AXI_GP4 1", "", "no pin ps/saxihp2_fpd_aclk"),
        ("loomwork::bus memory0/M00_AXI ps/S_AXI_HP0_FPD", "", "S_AXI_HP0_FPD is not connected"),
        (
            "kernel/m_axi_gmem1 memory1",
            "kernel/m_axi_gmem0 memory1",
            "kernel/m_axi_gmem0 is connected already",
        ),
        ("HP2_DDR_LOW", "HP1_DDR_LOW", "no segment ps/SAXIGP4/HP1_DDR_LOW"),
    ],
)
def test_the_stand_in_does_find_mistakes(whole, broken, message, tmp_path):
    made = Made(make_design("zcu104"), tmp_path)
    script = made.package / "block_design.tcl"
    assert whole in script.read_text()
    script.write_text(script.read_text().replace(whole, broken, 1))
    with pytest.raises(TclError, match=message):
        made.run("150", "1")


def make(directory, *arguments):
    command = ["make", "--dry-run", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_makefile_goes_from_verilog_to_bitstream(tmp_path):
    write_package(make_design("zcu104"), tmp_path / "p")
    run = make(tmp_path / "p", "bitstream", "FREQUENCY_MHZ=125")
    assert run.returncode == 0, run.stderr
    assert [line for line in run.stdout.splitlines() if "vivado" in line] == [
        "cd build && vivado -mode batch -source ../package_ip.tcl",
        "cd build && vivado -mode batch -source ../block_design.tcl -tclargs 125 4",
    ]
    run = make(tmp_path / "p", "run", "LAUNCH=c")
    assert run.stdout.strip() == 'python3 host.py "c" --bitstream build/loomwork_vadd.bit'
