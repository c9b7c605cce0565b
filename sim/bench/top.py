"""The testbench's top: a kernel, its memories, a clock, a watchdog; text from the kernel's port list.

The clock is made here, by ``always #half``: 72 k cycles/s of a 4,096-MAC array.  With cocotb's own
clock, which goes through VPI twice a cycle, it was 63 k.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hw.errors import InputError
from sim.host.template import filled

TOP = "loomwork_bench"
#: Cycles between two lines of the progress file.
PROGRESS_CYCLES = 16384

#: Ports that the top has whatever the kernel is.
_OWN = ("clk", "rst_n", "cycle_limit", "cycle", "expired", "finished", "interrupt")
_HEADER = re.compile(r"^\s*(input|output)\s+(?:wire\s+|reg\s+)?(?:\[(\d+):0\]\s*)?(\w+)\s*;", re.MULTILINE)
_AXI = re.compile(r"m_axi_(\w+)_([A-Z]+)")

# Members of the memory's port vectors, with constants for those that a kernel lacks.
_REQUESTS = {
    "awvalid": "1'b0", "awaddr": "'0", "awlen": "8'd0", "awsize": None, "awburst": "2'b01", "awid": "'0",
    "wvalid": "1'b0", "wdata": "'0", "wstrb": "'0", "wlast": "1'b0", "bready": "1'b0",
    "arvalid": "1'b0", "araddr": "'0", "arlen": "8'd0", "arsize": None, "arburst": "2'b01", "arid": "'0",
    "rready": "1'b0",
}  # fmt: skip
_ANSWERS = (
    "awready", "wready", "bvalid", "bresp", "bid", "arready", "rvalid", "rdata", "rresp", "rlast", "rid",
)  # fmt: skip
_FIXED_BITS = {"len": 8, "size": 3, "burst": 2, "resp": 2, "valid": 1, "ready": 1, "last": 1}


class Port(NamedTuple):
    """A port of the kernel's module."""

    name: str
    output: bool
    bits: int


def _ports(verilog: str, module: str) -> list[Port]:
    """Read the port list of ``module`` from Verilog as Amaranth writes it: a declaration a port."""
    found = re.search(rf"^module {re.escape(module)}\b(.*?)^endmodule", verilog, re.MULTILINE | re.DOTALL)
    if found is None:
        raise InputError("kernel", module, "a module of the generated Verilog")
    return [
        Port(name, direction == "output", int(high or 0) + 1)
        for direction, high, name in _HEADER.findall(found[1])
    ]


def bench_top(
    verilog: str,
    kernel: str,
    memories: Mapping[str, Sequence[str]],
    *,
    clock_mhz: float,
    constant: Collection[str] = (),
    signals: Sequence[str] = (),
) -> tuple[str, list[str]]:
    """Return the SystemVerilog of the module `TOP` around the module ``kernel`` of some Verilog, and its
    ports; ``memories`` has the AXI ports behind each memory.  Of ports in ``constant`` all data are 0.

    The kernel's ports are ``ap_clk``, ``ap_rst_n``, ``interrupt``, ``s_axi_control_*`` and
    ``m_axi_<port>_*``; its clock sets the time axis of waveforms.  Python drives and reads the module's
    own:

    * ``clk`` out, ``rst_n`` in, ``interrupt`` out, ``s_axi_control_*`` as the kernel has them;
    * ``cycle`` out: clock cycles since the beginning;
    * ``cycle_limit`` in: ``expired`` rises in that cycle, 0 for never;
    * ``finished`` out: ``interrupt`` or ``expired``, the one signal Python sleeps on.

    With the plus-argument ``progress=FILE`` a line with the cycle number is added to FILE now and then.

    ``signals``: paths of signals of one bit, from the kernel's module on.  With the plus-argument
    ``signals=FILE`` FILE gets a line for each cycle in which one has changed: the cycle, and all as a number.

    Raises `InputError` when the text has no such module, or its AXI ports are others.
    """
    ports = _ports(verilog, kernel)
    control = [port for port in ports if port.name.startswith("s_axi_control_")]
    wires: list[str] = []
    instances: list[str] = []
    axi: dict[str, dict[str, Port]] = {}
    for port in ports:
        if found := _AXI.fullmatch(port.name):
            axi.setdefault(found[1], {})[found[2].lower()] = port
    connected = [name for names in memories.values() for name in names]
    if sorted(connected) != sorted(axi):
        raise InputError("memory ports", sorted(connected), f"the kernel's: {sorted(axi)}")
    links = {
        "ap_clk": "clock",
        "ap_rst_n": "rst_n",
        "interrupt": "interrupt",
        **{port.name: port.name for port in control},
    }
    for memory, names in memories.items():
        if names:
            instances.append(_memory(memory, {name: axi[name] for name in names}, constant, wires, links))
    kernel_links = ",\n".join(f"    .{port.name}({links[port.name]})" for port in ports if port.name in links)
    declared = [
        f"{'output' if port.output else 'input'} bit {_range(port.bits)}{port.name}" for port in control
    ]
    text = filled(
        Path(__file__).with_name("top.sv.j2"),
        top=TOP,
        control=declared,
        half=max(1, round(5e5 / clock_mhz)),  # of the clock's period, in ps
        mask=PROGRESS_CYCLES.bit_length() - 1,
        wires="\n".join(wires),
        kernel=kernel,
        links=kernel_links,
        instances="\n".join(instances),
        signals=[f"kernel.{path}" for path in reversed(signals)],
    )
    return text, [*_OWN, *(port.name for port in control)]


def _memory(
    memory: str,
    named: Mapping[str, Mapping[str, Port]],
    constant: Collection[str],
    wires: list[str],
    links: dict[str, str],
) -> str:
    """Connect one memory; adds its wires and the kernel's links, and returns the instance."""
    ports = list(named.values())
    fixed = [name in constant for name in named]
    widths = {
        key: {port[key].bits for port in ports if key in port} for key in ("rdata", "wdata", "awid", "arid")
    }
    data = widths["rdata"] | widths["wdata"]
    ids = widths["awid"] | widths["arid"] or {1}
    if len(data) != 1 or len(ids) != 1:
        raise InputError(f"AXI ports of {memory}", sorted(data | ids), "of one data width and one ID width")
    data_bits, id_bits = data.pop(), ids.pop()
    bits = {"addr": 64, "data": data_bits, "strb": data_bits // 8, "id": id_bits, **_FIXED_BITS}
    connections = ["    .clk(clock)", "    .rst_n(rst_n)"]
    for member, default in _REQUESTS.items():
        width = bits[re.sub("^(aw|ar|w|b|r)", "", member)]
        parts = []
        for port, still in zip(ports, fixed, strict=True):
            if member not in port or (still and member in ("wdata", "wstrb")):
                value = f"3'd{(data_bits // 8).bit_length() - 1}" if default is None else default
                parts.append(f"{width}'({value})" if default == "'0" else value)
                continue
            wire = port[member].name
            wires.append(f"  wire {_range(port[member].bits)}{wire};")
            links[wire] = wire
            parts.append(wire if port[member].bits == width else f"{width}'({wire})")
        connections.append(f"    .{member}({{{', '.join(reversed(parts))}}})")
    for member in _ANSWERS:
        width = bits[re.sub("^(aw|ar|w|b|r)", "", member)]
        vector = f"{memory}_{member}"
        wires.append(f"  wire {_range(width * len(ports))}{vector};")
        connections.append(f"    .{member}({vector})")
        for index, port in enumerate(ports):
            if member in port and member == "rdata" and fixed[index]:
                links[port[member].name] = f"{width}'(0)"
            elif member in port:
                links[port[member].name] = (
                    f"{vector}[{index * width} +: {width}]" if len(ports) > 1 else vector
                )
    sizes = {"PORTS": len(ports), "ADDR_BITS": 64, "DATA_BITS": data_bits, "ID_BITS": id_bits}
    mask = sum(1 << index for index, still in enumerate(fixed) if still)
    parameters = [f'.NAME("{memory}")', *(f".{name}({size})" for name, size in sizes.items())]
    parameters += [f".CONSTANT({len(ports)}'h{mask:x})"] if mask else []
    return f"  loom_memory #({', '.join(parameters)}) {memory} (\n" + ",\n".join(connections) + "\n  );"


def _range(bits: int) -> str:
    return f"[{bits - 1}:0] " if bits > 1 else ""
