"""The models' sources, as a simulator build takes them."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def model_sources(*, verilog: bool = True) -> dict[str, str]:
    """Give the text of every source by file name.

    Parameters
    ----------
    verilog
        Also the SystemVerilog module ``loom_memory`` and the DPI-C entry that it calls; without them the rest
        makes a shared library that needs no simulator.
    """
    names = sorted(path.name for path in _HERE.iterdir() if path.suffix in (".cpp", ".h", ".sv"))
    simulator_only = ("dpi.cpp", "loom_memory.sv")
    return {name: (_HERE / name).read_text() for name in names if verilog or name not in simulator_only}
