"""A row's results of some query tiles: written a few lanes at a time, read a beat at a time."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import RESULT_BANKS, UNIT_BITS, AttentionConfig
from hw.attention.core.result.normalize import NormalLanes
from hw.lib.memory import ports, uninitialised


class OutputRead(data.StructLayout):
    """The beat to read: ``valid``, ``bank`` and ``beat``, less than `AttentionConfig.output_beats`."""

    def __init__(self, config: AttentionConfig, beat_width: int) -> None:
        beats = config.output_beats(beat_width)
        super().__init__({"valid": 1, "bank": range(RESULT_BANKS), "beat": range(beats)})


class OutputBuffer(wiring.Component):
    """Collects a row's results and returns them in beats, while other banks fill.

    ``beat_width``: bits of a beat: a power of two, at least those of the results of ``merge_lanes``.

    Why
    ---
    A beat is spread over as many narrow RAMs as steps fill it, so no RAM needs partial writes.
    """

    def __init__(self, config: AttentionConfig, *, beat_width: int) -> None:
        self._config = config
        self._beat_width = beat_width
        super().__init__(
            {
                "i": In(NormalLanes(config)),
                #: A copy for each port's slice: a bit for all slices would have 1,120 loads in two rows.
                "read": In(OutputRead(config, beat_width)).array(config.result_ports),
                #: The beat last read, from the next cycle on.  It has a slice for each of the W result ports,
                #: with unit n in slice n mod W, lowest lane in the low bits.  Lanes that are not in use are
                #: undefined.
                "o": Out(beat_width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        width = config.result_bits * config.merge_lanes
        pieces = self._beat_width // width
        beats = config.output_beats(self._beat_width)
        piece, beat = _divided(self.i.step, pieces)
        bits = min(width, UNIT_BITS)
        for n in range(min(pieces, config.merge_steps)):
            m.submodules[f"piece_{n}"] = memory = uninitialised(
                width=width, depth=RESULT_BANKS << (beats - 1).bit_length(), ram_style="distributed"
            )
            put, get = ports(memory)
            read = self.read[n * width // UNIT_BITS % config.result_ports]
            m.d.comb += [
                put.en.eq(self.i.valid & (piece == n)),
                put.addr.eq(self._address(beat, self.i.bank)),
                put.data.eq(self.i.lanes.as_value()),
                get.en.eq(read.valid),
                get.addr.eq(self._address(read.beat, read.bank)),
                *(
                    self.o[place : place + bits].eq(get.data[low : low + bits])
                    for low in range(0, width, bits)
                    for place in [self._place(n * width + low)]
                ),
            ]
        return m

    def _place(self, bit: int) -> int:
        """Return the position in a beat of bit ``bit`` of its lanes."""
        unit, low = divmod(bit, UNIT_BITS)
        ports = self._config.result_ports
        return unit % ports * (self._beat_width // ports) + unit // ports * UNIT_BITS + low

    def _address(self, beat: Value, bank: Value) -> Value:
        """Concatenate the beat and, above it, the bank."""
        bits = (self._config.output_beats(self._beat_width) - 1).bit_length()
        return Cat(beat[:bits], Const(0, max(0, bits - len(beat))), bank)


def _divided(value: Value, divisor: int) -> tuple[Value, Value]:
    """Return remainder and quotient of ``value`` and a power of two; either may have no bits."""
    bits = divisor.bit_length() - 1
    return value[:bits], value[bits:]
