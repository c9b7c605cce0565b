"""A kernel's resources on an UltraScale+ device, counted by Yosys part by part.

``synth_xilinx -family xcup -flatten`` maps the generated Verilog to the device's cells: a count before
placement, and not Vivado's.  A cell that the generator placed many times is synthesized once.  Every part is
kept in the cache of builds by its own text, so that sizes that share their rows share the work.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hw.board.resources import Resources
from hw.errors import ToolError
from sim.build.yosys import STAT, mapped, part_texts

#: Six-input LUTs that a primitive takes; RAM32M16 and RAM64M8 are the eight LUTs of a slice.
_LUTS = {**{f"LUT{n}": 1 for n in range(1, 7)}, "LUT6_2": 1}
_LUTRAMS = {
    "SRL16E": 1,
    "SRLC32E": 1,
    "RAM32X1S": 1,
    "RAM64X1S": 1,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
    "RAM128X1D": 4,
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32M16": 8,
    "RAM64M8": 8,
}
_FLIP_FLOPS = ("FDRE", "FDSE", "FDCE", "FDPE")
#: Halves of a block RAM of 36 Kibit.
_BLOCK_HALVES = {"RAMB18E2": 1, "RAMB36E2": 2}
#: Cells that take no counted resource: carries and wide multiplexers come with their LUTs, and an
#: inverter goes into the cell behind it.
_FREE = ("CARRY4", "CARRY8", "MUXF7", "MUXF8", "MUXF9", "INV", "GND", "VCC")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A module and everything in it but other parts."""

    name: str  #: Of its Verilog module.
    count: int  #: How many the kernel has.
    each: Resources  #: Resources of one; ``lut`` includes those used as memory.
    memory_lut: int  #: LUTs of one that are memories or shift registers.


@dataclass(frozen=True)
class Synthesis:
    """A kernel's resources by part, the whole kernel but for its cells first."""

    parts: tuple[Part, ...]

    @property
    def total(self) -> Resources:
        """Return the sum over all parts."""
        names = [name for name, _ in self.parts[0].each.items()]
        return Resources(
            **{name: sum(part.count * getattr(part.each, name) for part in self.parts) for name in names}
        )


def synthesize(verilog: str, top: str) -> Synthesis:
    """Count a kernel's resources; in its text, modules named ``CELL.x`` are within the module ``CELL``.

    Raises `ToolError` when pyosys is missing or refuses the text, or maps to a cell that is not known here.
    """
    texts = part_texts(verilog)
    cells: dict[str, dict[str, int]] = {}
    for number, name in enumerate(texts, start=1):
        entry = mapped(texts, name, note=f"part {number} of {len(texts)}")
        cells[name] = json.loads((entry / STAT).read_text())["design"]["num_cells_by_type"]
    totals: Counter[str] = Counter()

    def walk(name: str, count: int) -> None:
        totals[name] += count
        for cell, times in cells[name].items():
            if cell in texts:
                walk(cell, count * times)

    walk(top, 1)
    return Synthesis(tuple(_part(name, count, cells[name], texts) for name, count in totals.items()))


def _part(name: str, count: int, cells: Mapping[str, int], texts: Mapping[str, str]) -> Part:
    known = {*_LUTS, *_LUTRAMS, *_FLIP_FLOPS, *_BLOCK_HALVES, *_FREE, "DSP48E2", "URAM288", *texts}
    for cell in cells:
        if cell not in known:
            raise ToolError(f"Yosys maps {name} to {cell}, which is not one of the cells that are counted")

    def total(weights: Mapping[str, int]) -> int:
        return sum(cells.get(cell, 0) * weight for cell, weight in weights.items())

    memory_lut = total(_LUTRAMS)
    return Part(
        name=name,
        count=count,
        each=Resources(
            lut=total(_LUTS) + memory_lut,
            ff=total(dict.fromkeys(_FLIP_FLOPS, 1)),
            dsp=cells.get("DSP48E2", 0),
            bram36=-(-total(_BLOCK_HALVES) // 2),
            uram=cells.get("URAM288", 0),
        ),
        memory_lut=memory_lut,
    )
