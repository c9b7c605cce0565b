"""The compared works: the operations of CoDeNet's table 2, and its networks."""

from pathlib import Path

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.network import BOUND, row_layer
from hw.conv.driver.table import Row, read_table
from sim.compare.runner import listed_names
from sim.engines.conv.baselines.work import Work

#: An engine with CoDeNet's 16 x 16 array, weights of 4 bits, and 64 depthwise multipliers for its 144.
ARRAY = ConvConfig(lanes=64, taps=1, strip=False, inputs=16, outputs=16, weight_bits=4, block_pixels=64)
#: The same with a line buffer of 16 rows of 64 pixels of 256 channels, where that has 15.
ROWS = 1024
#: Configurations of CoDeNet whose layer tables there are.
NETWORKS = ("a", "c", "d")
_SIDE, _CHANNELS = 64, 256
_OFFSETS = {
    "": (Offsets.NONE, None),
    ", deformable": (Offsets.FREE, None),
    ", bounded": (Offsets.FREE, BOUND),
    ", square": (Offsets.SQUARE, BOUND),
}
#: Name of the operation whose samples are all outside of a line buffer of 16 rows.
OUTSIDE = "depthwise, all outside"


def operation(kind: str, offsets: Offsets = Offsets.NONE, bound: int | None = None) -> ConvLayer:
    """Return a 3 x 3 layer of 64 x 64 pixels and 256 channels, ``full`` or ``depthwise``."""
    return ConvLayer(
        channels=_CHANNELS,
        rows=_SIDE,
        columns=_SIDE,
        outputs=_CHANNELS,
        kernel=(3, 3),
        pads=(1, 1, 1, 1),
        group=_CHANNELS if kind == "depthwise" else 1,
        offsets=offsets,
        bound=bound,
    )


def works() -> tuple[Work, ...]:
    """Return everything that is compared: operations, then networks."""
    found = [
        Work(name=f"{kind}{suffix}", layers=(operation(kind, *offsets),))
        for kind in ("depthwise", "full")
        for suffix, offsets in _OFFSETS.items()
    ]
    outside = operation("depthwise", Offsets.FREE)
    found.append(Work(name=OUTSIDE, layers=(outside,), outside=True))
    for name in NETWORKS:
        found.append(Work(name=f"config {name}", layers=tuple(map(row_layer, network_rows(name)))))
    return tuple(found)


def named(works: tuple[Work, ...], names: str) -> list[Work]:
    """Return works by their names with commas between, spaces as in a name or ``-`` for ", ".

    Raises `InputError` for a name that there is not.
    """
    return listed_names(names, {key_of_name(work.name): work for work in works})


def key_of_name(name: str) -> str:
    """Return a name as the command line has it: ``depthwise-bounded``, ``config-c``."""
    return name.replace(", ", "-").replace(" ", "-")


def network_rows(name: str) -> list[Row]:
    """Read the layer table of a configuration."""
    return read_table(Path(__file__).parents[1] / "tables" / f"codenet_{name}.csv")
