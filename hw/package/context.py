"""Variables of the templates: the argument table and the board, in the terms of each tool."""

import json
from typing import Any

from hw.design import Design
from hw.lib import registers
from hw.lib.arguments import POINTER_ALIGN_BYTES, RANGE_BYTES, STATUS_BUS, ArgumentKind
from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.kernel import CONTROL_PREFIX, MEMORY_PREFIX
from hw.package.regions import constrained

#: Name, byte offset, meaning and fields (name, bit, access) of the registers every kernel has.
CONTROL_REGISTERS = (
    (
        "CTRL",
        registers.CONTROL,
        "Control",
        (
            ("AP_START", registers.AP_START, "read-write"),
            ("AP_DONE", registers.AP_DONE, "read-only"),
            ("AP_IDLE", registers.AP_IDLE, "read-only"),
            ("AP_READY", registers.AP_READY, "read-only"),
            ("AUTO_RESTART", registers.AUTO_RESTART, "read-write"),
        ),
    ),
    ("GIER", registers.GLOBAL_INTERRUPT_ENABLE, "Global interrupt enable", ()),
    ("IP_IER", registers.INTERRUPT_ENABLE, "Interrupt enable", ()),
    ("IP_ISR", registers.INTERRUPT_STATUS, "Interrupt status, toggled by writing 1", ()),
)

#: Name of a memory in Vitis, by its kind on the board.
_VITIS_MEMORY = {"hbm2": "HBM", "ddr4": "DDR", "lpddr4": "DDR", "host": "HOST"}


#: High-performance ports of Zynq UltraScale+'s processing system, HP0 to HP3.
_HIGH_PERFORMANCE_PORTS = 4
#: Address of M_AXI_HPM0_FPD (UG1085, System Addresses).
_CONTROL_BASE = 0xA000_0000


def context(design: Design) -> dict[str, Any]:
    """Return the variables of all templates."""
    table, board = design.table, design.board
    interfaces = [f"{MEMORY_PREFIX}_{port.name}" for port in design.ports]
    vitis = {memory.name: _VITIS_MEMORY[memory.kind] for memory in board.memories}
    return {
        "kernel": design.top_name,
        "design": design,
        "board": board,
        "arguments": table.registers,
        "counters": table.counter_registers,
        "names": [argument.name for argument in table.arguments],
        "status_bus": STATUS_BUS,
        "control_registers": CONTROL_REGISTERS,
        "control": CONTROL_PREFIX,
        "memory_interfaces": interfaces,
        "associated": {
            register.argument.name: f"{MEMORY_PREFIX}_{register.argument.port}"
            for register in table.registers
            if register.argument.kind is ArgumentKind.POINTER
        },
        "connections": [
            (interface, f"{vitis[port.memory]}[{port.channel}]")
            for interface, port in zip(interfaces, design.ports, strict=True)
        ],
        "slr": _slr(design),
        "regions": constrained(design),
        "range_bytes": RANGE_BYTES,
        "control_base": _CONTROL_BASE,
        "high_performance": _high_performance(interfaces),
        "burst_beats": MAX_BURST_BEATS,
        "align_bytes": POINTER_ALIGN_BYTES,
        "read_bursts": design.bursts_under_way[0],
        "write_bursts": design.bursts_under_way[1],
        "registers": registers,
    }


def _high_performance(names: list[str]) -> list[tuple[int, list[str]]]:
    """Return the kernel's interfaces at each high-performance port in use, spread evenly."""
    used = min(len(names), _HIGH_PERFORMANCE_PORTS)
    return [(number, names[number::used]) for number in range(used)]


def _slr(design: Design) -> str | None:
    """Return the die of the kernel, that of its memory's ports; None for several dies, or none that fits."""
    board = design.board
    if board.memory.kind != "hbm2" or board.slrs == 1 or len(design.regions) > 1:
        return None
    return f"SLR{board.memory.slr}" if not design.resources.over_shares(board.die) else None


def tcl_word(text: str) -> str:
    """Return ``text`` as one Tcl word without substitutions."""
    return '"' + "".join(f"\\{letter}" if letter in '\\"$[]{};' else letter for letter in text) + '"'


def c_comment(text: str) -> str:
    """Return ``text`` without the ends and beginnings of C comments."""
    return text.replace("*/", "* /").replace("/*", "/ *")


def python_literal(value: Any) -> str:
    """Return a string or number as Python source, with double quotes."""
    return json.dumps(value, ensure_ascii=False)
