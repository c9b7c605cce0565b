"""The models' sources, as a simulator build takes them."""

from __future__ import annotations

from pathlib import Path


def model_sources() -> dict[str, str]:
    """Give the text of every source by file name: C++, and the SystemVerilog module ``loom_memory``."""
    paths = sorted(Path(__file__).resolve().parent.iterdir())
    return {path.name: path.read_text() for path in paths if path.suffix in (".cpp", ".h", ".sv")}
