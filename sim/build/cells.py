"""Cells: Verilog modules placed many times, and how to let all placements share one piece of code.

Verilator compiles a module's logic once for all its instances only if it comes out equal for each.  Two of
its optimizations prevent that: an input is replaced by the parent's expression (bit 7 of a vector for one
placement, bit 8 for the next), and the data-flow pass names its temporaries by instance.  A 32-row array then
has 32 copies of its row, and pays with three times the build time and half the speed.  With 4,096
multiply-accumulators it was 58 s of compiling and 39 k cycles/s, against 20 s and 95 k.  So the inputs of
cells are declared visible, which keeps them, and the pass is switched off.
"""

import functools
import re
from collections import Counter

#: Placements from which a module is a cell; how often all placements must have the text, for cells to pay.
_MANY, _SHARED = 4, 2
_INSTANCE = re.compile(r"^\s*(\\\S+|[a-z_]\w*)\s+(?:#\s*\([^;]*?\)\s*)?(?:\\\S+ |\w+)\s*\(\s*$", re.MULTILINE)
_INPUT = re.compile(r"^\s*input\s+(?:wire\s+)?(?:\[\d+:0\]\s*)?([a-z_]\w*)\s*;", re.MULTILINE)
#: A clock stays as it is: Verilator finds its edges through the hierarchy.
_CLOCKS = {"clk", "ap_clk"}

#: Verilator's flags beside the visible inputs.  Tables that it puts in place of logic have indices named by
#: instance, too.
FLAGS = ("-fno-dfg", "-fno-table")


def cell_inputs(verilog: str) -> dict[str, tuple[str, ...]]:
    """Return the inputs, clock aside, of each module that is placed four times or more, in order of the text.
    That is as Amaranth writes it: an instance begins a line, a port declaration is one line.

    None where sharing does not pay.
    """
    found = re.finditer(r"^module (\\\S+|[a-z_]\w*)(.*?)^endmodule", verilog, re.MULTILINE | re.DOTALL)
    bodies = {match[1]: match[2] for match in found}
    within = {
        name: Counter(placed for placed in _INSTANCE.findall(body) if placed in bodies)
        for name, body in bodies.items()
    }

    @functools.cache
    def placed_text(name: str) -> int:
        return len(bodies[name]) + sum(count * placed_text(part) for part, count in within[name].items())

    placed = sum(within.values(), Counter())
    text = sum(placed_text(name) for name in bodies.keys() - placed.keys())
    if text < _SHARED * sum(map(len, bodies.values())):
        return {}
    return {
        name: tuple(port for port in _INPUT.findall(body) if port not in _CLOCKS)
        for name, body in bodies.items()
        if placed[name] >= _MANY and not name.startswith("\\")
    }
