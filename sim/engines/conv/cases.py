"""The regression: random layers of every kind on one small engine, and blocks of networks."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.driver.table import NETWORK, Row, square
from hw.launch import Tensor, Tensors
from sim.run.adapter import Case

#: Everything that a configuration can switch on, at a size that builds in seconds: one simulator for all
#: launches.
SMALL = ConvConfig(
    lanes=16,
    inputs=8,
    outputs=8,
    ports=2,
    port_bits=128,
    bank_words=256,
    memory="block",
    block_pixels=32,
    block_words=256,
    bypass_words=128,
    tap_words=128,
    offset_entries=512,
    strip_words=16,
)
_MODES = ("model", "fast", "jitter")
_KINDS = ("depthwise", "deformable", "square", "pointwise", "plain", "dense", "strip")


#: Random launches of `make test`, beside those of `tests.regression.test_conv_sequences`, and of the soak.
_IN_TEST, _IN_SOAK = 2, 100
#: Most rows and columns of a map in `make test`: the line buffer holds all of it, whatever the offsets. Half
#: of the soak's maps have up to twice as many.
_SIDE = 10


def regression() -> Iterator[Case]:
    """Return a network of every kind of job and random layers; those of the soak come last."""
    yield _blocks("model")
    for number in range(_IN_SOAK):
        rng, soak = np.random.default_rng(number), number >= _IN_TEST
        side = 2 * _SIDE if soak and number % 2 else _SIDE
        yield Case(
            name=f"random_{number}",
            board="u55c",
            config=SMALL,
            tensors=random_layer(rng, SMALL, _KINDS[number % len(_KINDS)], side=side),
            memory=_MODES[number % len(_MODES)],
            seed=number,
            soak=soak,
        )
    yield from (_blocks(memory, soak=True) for memory in ("fast", "jitter"))


def _blocks(memory: str, *, soak: bool = False) -> Case:
    tensors = {NETWORK: as_network(BLOCKS)}
    return Case(
        name=f"blocks_{memory}", board="u55c", config=SMALL, tensors=tensors, memory=memory, soak=soak
    )


#: A stem, a unit with branches, two units that shuffle, a decoder and a head, all of few channels.
BLOCKS = tuple(
    square(*values)
    for values in (
        ("stem", "conv", 48, 3, 10, 3, 4, 1),
        ("s1.0.b1.dw", "dw", 12, 10, 10, 3, 2, 10),
        ("s1.0.b1.pw", "pw", 6, 10, 18, 1, 1, 1),
        ("s1.0.b2.pw1", "pw", 12, 10, 18, 1, 1, 1),
        ("s1.0.b2.dw", "dw", 12, 18, 18, 3, 2, 18),
        ("s1.0.b2.pw2", "pw", 6, 18, 18, 1, 1, 1),
        ("s1.1.pw1", "pw", 6, 18, 18, 1, 1, 1),
        ("s1.1.dw", "dw", 6, 18, 18, 3, 1, 18),
        ("s1.1.pw2", "pw", 6, 18, 18, 1, 1, 1),
        ("s1.2.pw1", "pw", 6, 18, 18, 1, 1, 1),
        ("s1.2.dw", "dw", 6, 18, 18, 3, 1, 18),
        ("s1.2.pw2", "pw", 6, 18, 18, 1, 1, 1),
        ("dc0.off", "pw", 6, 36, 1, 1, 1, 1),
        ("dc0.ddw", "ddw", 6, 36, 36, 3, 1, 36),
        ("dc0.pw", "pw", 6, 36, 20, 1, 1, 1),
        ("head.pw1", "pw", 12, 20, 20, 1, 1, 1),
        ("head.dw", "dw", 12, 20, 20, 3, 1, 20),
        ("head.pw2", "pw", 12, 20, 2, 1, 1, 1),
    )
)


def as_network(rows: Sequence[Row]) -> Tensor:
    """Put a table among tensors."""
    found = np.empty((), object)
    found[()] = list(rows)
    return found


def random_layer(rng: np.random.Generator, config: ConvConfig, kind: str, *, side: int = _SIDE) -> Tensors:
    """Return the tensors of a layer of a kind of `_KINDS` and any shape that ``config`` can do.

    Maps have up to ``side`` rows and columns.
    """
    rows, columns = (int(n) for n in rng.integers(1, side + 1, 2))
    channels = int(rng.choice([1, int(rng.integers(1, 17)), int(rng.integers(1, 50))]))
    kernel = (1, 1) if kind == "pointwise" else _pair(rng, 3)
    if kind in ("square", "strip"):
        kernel = (3, 3)
    dilations = _pair(rng, 2)
    if kind == "strip":
        dilations = (dilations[0], dilations[0])
    strides = (1, 1) if kind == "pointwise" else _pair(rng, 2)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    pads = [0, 0, 0, 0]
    if kind != "pointwise":
        for axis, size in enumerate((rows, columns)):
            least = max(0, reach[axis] - size)
            pads[axis] = int(rng.integers(0, reach[axis])) + least
            pads[axis + 2] = int(rng.integers(0, reach[axis]))
    depthwise = kind in ("depthwise", "deformable", "square", "strip")
    if not depthwise:
        channels = min(channels, 20)
    groups = int(rng.integers(1, 4))
    channels = -(-channels // groups) * groups
    group = channels if depthwise else int(rng.choice([1, groups]))
    outputs = channels if depthwise else group * int(rng.integers(1, 18 // group))
    out_size = [
        (n + pads[axis] + pads[axis + 2] - reach[axis]) // strides[axis] + 1
        for axis, n in enumerate((rows, columns))
    ]
    top = 127 if config.weight_bits == 8 else 7
    tensors: dict[str, NDArray[Any]] = {
        "x": rng.integers(-128, 128, (channels, rows, columns), dtype=np.int8),
        "w": rng.integers(-top, top + 1, (outputs, channels // group, *kernel), dtype=np.int8),
        "bias": rng.integers(-1000, 1000, outputs),
        "x_zero": np.array(rng.integers(-128, 128)),
        "group": np.array(group),
        "pads": np.array(pads),
        "strides": np.array(strides),
        "dilations": np.array(dilations),
    }
    if kind in ("deformable", "dense"):
        taps = kernel[0] * kernel[1]
        reals = rng.normal(0, 2, (2 * groups * taps, *out_size))
        edges = rng.choice([-1.0, -1.03, -0.97, float(rows - 1), float(rows), 0.0], reals.shape)
        tensors["offset"] = np.where(rng.random(reals.shape) < 0.2, edges, reals)
        tensors["offset_group"] = np.array(groups)
        if side > _SIDE or rng.random() < 0.5:
            tensors["bound"] = np.array(rng.integers(0, 3))
        if config.mask and rng.random() < 0.5:
            tensors["mask"] = rng.random((groups * taps, *out_size))
    if kind == "square":
        tensors["offset"] = rng.normal(0, 2, tuple(out_size))
        tensors["bound"] = np.array(rng.integers(0, 3))
    return tensors


def _pair(rng: np.random.Generator, most: int) -> tuple[int, int]:
    first, second = rng.integers(1, most + 1, 2)
    return int(first), int(second)
