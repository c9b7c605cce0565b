"""The text of a control-only simulation without data: words that decide nothing are not moved.

Verilator keeps registers and memories that only ever hold zeros, and those that nothing reads.  Yosys removes
both, over the whole kernel.  Attention's default then simulates 393,464 cycles in 2.4 s of processor instead
of 3.2 s.  Yosys takes 20 s.  Registers that hand zeros round, as in the packers of results, are not found.
"""

import importlib.util
import re
from collections.abc import Sequence

from sim.build.cache import BuildCache
from sim.build.yosys import run_yosys
from sim.host.digest import key_of

_TEXT = "control.v"
#: A memory of zeros makes registers constant, and these the next memory.
_ROUNDS = 5
_ROUND = ("opt_expr", "opt_merge", "opt_muxtree", "opt_reduce", "opt_dff", "opt_clean -purge", "opt_mem")


def without_data(verilog: str, kernel: str, ports: Sequence[str]) -> str:
    """Return the module ``kernel`` of ``verilog``, flattened, where the memory ports ``ports`` read zeros and
    write nothing.

    Their data ports (RDATA, WDATA, WSTRB) are gone.  All else has the same value in every cycle.  The text is
    returned as it is where no port is given, or pyosys is not installed.
    """
    if not ports or importlib.util.find_spec("pyosys") is None:
        return verilog
    commands = [f"hierarchy -top {kernel}", "proc -norom", f"cd {kernel}"]
    for port in ports:
        commands += _cut(verilog, f"m_axi_{port}")
    commands += [
        "cd ..",
        # Equal registers were kept apart for placing.
        *(f"setattr -unset keep {objects}" for objects in ("*/*", "*/w:*", "*/c:*")),
        "opt_clean -purge",
        "flatten",
        "delete t:$scopeinfo",
        "opt_clean -purge",
        "memory_collect",
        # Selections beyond the end of a word are unknown; unknown bits would keep all that takes them.
        "setundef -zero",
        *_ROUND * _ROUNDS,
        # Verilator changes parts of a wide word by reading and writing the word.
        "splitnets -driver",
        "opt_clean -purge",
        *_ROUND,
        f"write_verilog -noattr {_TEXT}",
    ]
    folder, _ = BuildCache("netlists").get(
        key_of(["control", verilog, *commands]),
        lambda entry: run_yosys(entry, verilog, commands, kernel, title="Leaving data out of"),
    )
    return (folder / _TEXT).read_text()


def _cut(verilog: str, interface: str) -> list[str]:
    """Return the commands that make the data of an AXI interface zero and unread."""
    commands = []
    if found := re.search(rf"^\s*input (?:\[(\d+):0\] )?{interface}_RDATA;", verilog, re.MULTILINE):
        port = f"{interface}_RDATA"
        commands += [f"delete -input w:{port}", f"connect -set {port} {int(found[1] or 0) + 1}'d0"]
    for port in (f"{interface}_WDATA", f"{interface}_WSTRB"):
        if re.search(rf"^\s*output (?:\[\d+:0\] )?{port};", verilog, re.MULTILINE):
            commands.append(f"delete -output w:{port}")
    return commands
