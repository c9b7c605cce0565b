"""The convolution engine's demo: a photograph turned, zoomed and filtered by one deformable layer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.launch import Tensor, Tensors
from sim.engines.conv.cases import SMALL
from sim.engines.conv.job import RESULT
from sim.run.adapter import Demo, Results

Picture = NDArray[np.uint8]
#: The launch's name.
LAUNCH = "photograph"
#: Clockwise turn of the photograph in degrees, and its zoom.
TURN, ZOOM = 20.0, 1.25
#: 3 x 3 filters by name, and a term added to their results: results with negative values are shown around
#: grey.
FILTERS: Mapping[str, tuple[tuple[tuple[float, ...], ...], float]] = {
    "as it is": (((0, 0, 0), (0, 1, 0), (0, 0, 0)), 0),
    "Gaussian": (((1 / 16, 1 / 8, 1 / 16), (1 / 8, 1 / 4, 1 / 8), (1 / 16, 1 / 8, 1 / 16)), 0),
    "Laplacian": (((0, 1, 0), (1, -4, 1), (0, 1, 0)), 128),
    "Sobel, across": (((-1 / 2, 0, 1 / 2), (-1, 0, 1), (-1 / 2, 0, 1 / 2)), 128),
    "Sobel, down": (((-1 / 2, -1, -1 / 2), (0, 0, 0), (1 / 2, 1, 1 / 2)), 128),
}
_COLOURS = 3
#: The regression's engine with a line buffer that holds the photograph.  A turn takes each row of results
#: from a third of its rows; pixels that are not in the buffer are fetched one by one.
CONFIG = replace(SMALL, bank_words=4096)


def conv_demo() -> Demo:
    """Return a photograph through a depthwise layer: a channel for each filter of each colour.

    Its offsets turn and zoom the photograph about the middle.
    """
    picture = read_picture(photograph())
    tensors = layer(picture)

    def conclude(results: Results) -> Sequence[str]:
        cycles, samples = results[LAUNCH].report.cycles, tensors["x"].size // _COLOURS // len(FILTERS) * 9
        what = (
            f"{samples:,} bilinear samples of {len(tensors['x'])} channels in {cycles.cycles_total:,} cycles"
        )
        same = "all bytes of the pictures are" if results[LAUNCH].report.bit_exact else "NOT all bytes are"
        return [f"Photograph turned by {TURN:g}° and {ZOOM:g} x larger: {what}; {same} the golden model's."]

    return Demo(
        title=f"a photograph of {picture.shape[1]} x {picture.shape[0]} pixels, turned, zoomed and filtered",
        config=CONFIG,
        launches={LAUNCH: tensors},
        conclude=conclude,
        pictures=lambda results: {"photograph": picture, **pictures(results[LAUNCH].outputs[RESULT])},
    )


def photograph() -> Path:
    """Return the path of the photograph; its licence is beside it."""
    return Path(__file__).parent / "photograph" / "coffee.ppm"


def read_picture(path: Path) -> Picture:
    """Read a binary PPM of 8 bits a colour as ``[rows, columns, 3]``.

    Raises `InputError` for a file of another format.
    """
    content = path.read_bytes()
    fields = content.split(maxsplit=4)
    if len(fields) != 5 or fields[0] != b"P6" or fields[3] != b"255":
        raise InputError(str(path), content[:2].decode(errors="replace"), "a binary PPM, P6, of 8 bits")
    columns, rows = int(fields[1]), int(fields[2])
    size = rows * columns * _COLOURS
    return np.frombuffer(content[-size:], np.uint8).reshape(rows, columns, _COLOURS)


def layer(picture: Picture) -> Tensors:
    """Return the tensors of the layer; zero is black, inside the photograph and outside."""
    colours = (picture.transpose(2, 0, 1).astype(np.int16) - 128).astype(np.int8)
    kernels = np.array([kernel for kernel, _ in FILTERS.values()], np.float64)
    w = kernels.repeat(_COLOURS, axis=0)[:, np.newaxis]
    bias = np.array([grey for _, grey in FILTERS.values()], np.float64)
    return {
        "x": np.tile(colours, (len(FILTERS), 1, 1)),
        "x_scale": np.array(1.0),
        "x_zero": np.array(-128),
        "w": w,
        "bias": bias.repeat(_COLOURS),
        "offset": turned(*picture.shape[:2]),
        "y_scale": np.array(1.0),
        "y_zero": np.array(-128),
        "group": np.array(len(w)),
        "pads": np.array(1),
        "accumulators": np.array(0),
    }


def turned(rows: int, columns: int) -> NDArray[np.float64]:
    """Return offsets ``[2 * 9, rows, columns]`` that turn and zoom a map, and the kernels with it."""
    angle = math.radians(TURN)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) / ZOOM
    at = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))  # [2, rows, columns]
    taps = np.stack(np.meshgrid((-1, 0, 1), (-1, 0, 1), indexing="ij")).reshape(2, 9)
    points = at[np.newaxis] + taps.T[..., np.newaxis, np.newaxis]  # [9, 2, rows, columns]
    middle = np.array([(rows - 1) / 2, (columns - 1) / 2]).reshape(2, 1, 1)
    moved = np.einsum("ij,kjrc->kirc", turn, points - middle) + middle
    return (moved - points).reshape(18, rows, columns)


def pictures(y: Tensor) -> Mapping[str, Picture]:
    """Return the results, bytes unchanged, as a picture for each filter."""
    colours = (y.astype(np.int16) + 128).astype(np.uint8)
    by_filter = colours.reshape(len(FILTERS), _COLOURS, *y.shape[1:]).transpose(0, 2, 3, 1)
    return dict(zip(FILTERS, by_filter, strict=True))
