"""Commands of the movers, one set for each job."""

from amaranth.lib import data

from hw.conv.config import SIDE_BITS, WORDS_BITS, ConvConfig
from hw.conv.core.route import TOTAL_BITS
from hw.lib.rows.command import RowsCommand

ADDRESS_BITS = 64
LENGTH_BITS = 32


def map_rows(config: ConvConfig) -> RowsCommand:
    """Return the row format of a port's cutters and packers: parts of pixels, in bytes."""
    most = (1 << WORDS_BITS) * config.lanes // config.ports
    return RowsCommand(most_rows=(1 << 2 * SIDE_BITS) - 1, most_units=most, unit_bits=8)


class PortRead(data.StructLayout):
    """A map at one port."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "address": ADDRESS_BITS,  #: Of the first byte.
                "pitch": LENGTH_BITS,  #: Bytes from row to row.
                "bytes": LENGTH_BITS,  #: Of a chunk.
                "last_bytes": LENGTH_BITS,  #: Bytes of the last chunk of a row.
                #: Bytes of a part of a pixel; 0 if the port has none.
                "units": map_rows(config)["units"].shape,
            }
        )


class MapRead(data.StructLayout):
    """A map that is read."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: ``rows``, ``chunks``: rows of the map (or 1 for the whole map), and chunks of each; a chunk
                #: is a command of the DMA.
                "rows": SIDE_BITS,
                "chunks": 2 * SIDE_BITS,
                #: ``pixels``, ``last_pixels``: parts of pixels in a chunk, and in the last one of a row.
                "pixels": 2 * SIDE_BITS,
                "last_pixels": 2 * SIDE_BITS,
                #: Chunks, of all rows, that share a token; 0 for none.
                "token_chunks": SIDE_BITS,
                "by_row": 1,  #: Tokens are for rows of the depthwise unit, not for blocks.
                "paired": 1,  #: A map of the bypass is paired with it.
                "words": WORDS_BITS,  #: Words of a part.
                "total_words": TOTAL_BITS,  #: Of the map.
                "ports": data.ArrayLayout(PortRead(config), config.ports),
            }
        )


class PortGather(data.StructLayout):
    """A map at one port: ``address`` of its first byte, ``pitch`` from row to row, ``units``: bytes of a
    pixel, 0 if the port has none.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {"address": ADDRESS_BITS, "pitch": LENGTH_BITS, "units": map_rows(config)["units"].shape}
        )


class GatherRead(data.StructLayout):
    """A map whose pixels are read one by one: ``words`` of each, and ``ports``, see `PortGather`."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__({"words": WORDS_BITS, "ports": data.ArrayLayout(PortGather(config), config.ports)})


class PortWrite(data.StructLayout):
    """A map at one port: ``address``, ``pitch`` from row to row, ``bytes`` of a row, ``units`` of a part."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "address": ADDRESS_BITS,
                "pitch": LENGTH_BITS,
                "bytes": LENGTH_BITS,
                "units": map_rows(config)["units"].shape,
            }
        )


class MapWrite(data.StructLayout):
    """A map that is written."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "rows": SIDE_BITS,  #: Of the map, or 1 for the whole of it.
                "parts": 2 * SIDE_BITS,  #: Parts of pixels in a row.
                "words": WORDS_BITS,  #: Words of a part.
                "ports": data.ArrayLayout(PortWrite(config), config.ports),
            }
        )


class WeightRead(data.StructLayout):
    """Weights of a job: ``bytes`` at ``address``, then ``tile_bytes`` at ``tiles``, ``repeats`` times."""

    def __init__(self) -> None:
        super().__init__(
            {
                "address": ADDRESS_BITS,
                "bytes": LENGTH_BITS,
                "tiles": ADDRESS_BITS,
                "tile_bytes": LENGTH_BITS,
                "repeats": 2 * SIDE_BITS,
            }
        )


class OffsetRead(data.StructLayout):
    """Offsets of a job: ``bytes`` at ``address``; ``entries`` in all, of ``units`` of 16 bits each.

    ``fields``: numbers of an offset: 1 if it is square, 2 if it is free, 3 if it has a mask, too.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "address": ADDRESS_BITS,
                "bytes": LENGTH_BITS,
                "entries": TOTAL_BITS,
                "units": range(3 * config.taps + 1),
                "fields": 2,
            }
        )
