"""Memory models: C++ behind DPI-C in co-simulation, and behind ctypes in unit tests.

Members
-------
VERILOG
    The SystemVerilog module ``loom_memory``; its port list is documented at the top of the file.
SOURCES, HEADERS
    C++ sources that are built with every simulator, and what they include.
"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent

VERILOG: Path = _HERE / "loom_memory.sv"
SOURCES: tuple[Path, ...] = tuple(sorted(_HERE.glob("*.cpp")))
HEADERS: tuple[Path, ...] = tuple(sorted(_HERE.glob("*.h")))
