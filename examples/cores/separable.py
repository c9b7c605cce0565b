"""A design of one's own around the convolution core: one layer pair with its weights on chip, frame by frame.

``separable.v`` is the same design in Verilog.
"""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.cores import ConvConfig, ConvCore, InlinePlacer, item_bits

#: Inputs of the core that the frame's own words feed.
_OWN = ("i",)


class Separable(wiring.Component):
    """A job of the convolution core, again for every frame.

    ``beat_bits``: of the weights. ``items``: commands and weights of a frame, as of
    `hw.cores.conv_streams`; those of ``i`` are the frame itself.
    """

    def __init__(self, config: ConvConfig, items: Mapping[str, list[Any]], *, beat_bits: int) -> None:
        self._config = config
        self._items = {name: given for name, given in items.items() if given and name not in _OWN}
        self._beat_bits = beat_bits
        words = stream.Signature(8 * config.lanes)
        super().__init__(
            {
                "i_frame": In(stream.Signature(1)),  #: A frame follows; its payload is not used.
                "i": In(words),  #: Its words.
                "o": Out(words),  #: Words of the results.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A table and a counter for each input of the core that has items."""
        m = Module()
        m.submodules.core = core = ConvCore(self._config, InlinePlacer(), beat_bits=self._beat_bits)
        connect(m, flipped(self.i), core.i)
        connect(m, core.o, flipped(self.o))
        begin = self.i_frame.valid & self.i_frame.ready
        busy = []
        for name, given in self._items.items():
            port = _port(core, name)
            shape = port.payload.shape()
            bits = [item_bits(shape, item) for item in given]
            m.submodules[f"table_{name}"] = table = Memory(
                shape=len(Value.cast(port.payload)), depth=len(bits), init=bits
            )
            read = table.read_port(domain="comb")
            at = Signal(range(len(bits) + 1), init=len(bits), name=f"at_{name}")
            m.d.comb += [
                read.addr.eq(at),
                port.payload.eq(read.data),
                port.valid.eq(at != len(bits)),
            ]
            with m.If(begin):
                m.d.sync += at.eq(0)
            with m.Elif(port.valid & port.ready):
                m.d.sync += at.eq(at + 1)
            busy.append(port.valid)
        m.d.comb += self.i_frame.ready.eq(sum(busy) == 0)
        # No command asks for tokens.
        m.d.comb += [token.ready.eq(1) for token in (core.row_token, core.block_token, core.bypass_token)]
        return m


def _port(core: ConvCore, name: str) -> Any:
    """Return an input of the core by its flat name."""
    array, _, number = name.rpartition("_")
    return getattr(core, array)[int(number)] if number.isdigit() else getattr(core, name)
