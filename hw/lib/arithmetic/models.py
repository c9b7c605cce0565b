"""Models of cells that generated Verilog places and does not define, for tools that run it."""

from pathlib import Path

_FOLDER = Path(__file__).parent
#: Files of the modules that may be placed: AMD's own cells, and models of many of them for simulations.
_MODELS = {
    "DSP48E2": (_FOLDER / "DSP48E2.v",),
    "LoomDots": (_FOLDER / "lanes" / "LoomDots.sv", _FOLDER / "lanes" / "lanes.cpp"),
    "LoomMatrix": (_FOLDER / "lanes" / "LoomMatrix.sv", _FOLDER / "lanes" / "matrix.cpp"),
    "LoomSums": (_FOLDER / "lanes" / "LoomSums.sv", _FOLDER / "lanes" / "lanes.cpp"),
}


def models_of(verilog: str) -> list[Path]:
    """Return the files with the models of the cells that generated Verilog places."""
    return list(dict.fromkeys(path for cell, paths in _MODELS.items() if cell in verilog for path in paths))
