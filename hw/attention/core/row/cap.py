"""Logit cap: ``cap * tanh(x / cap)``, piecewise linear."""

import math
from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed, unsigned
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import CAP_BITS, LOGIT_BITS
from hw.lib.arithmetic.fixed import round_half_up
from hw.lib.delay import delay

#: Segments on [0, 8), and bits of x (18 fraction bits) below the segment number.
_SEGMENTS = 1024
_WITHIN_BITS = 11
_MAGNITUDE_BITS = _WITHIN_BITS + 10
#: The table is in units of 2^-19.
_START_BITS, _GAIN_BITS = 19, 13
#: tanh is in units of 2^-17.
_TANH_BITS = 17
_TANH_SHIFT = _WITHIN_BITS + 2


def tanh_table() -> tuple[tuple[int, int], ...]:
    """Return start A and gain E of each segment of tanh on [0, 8), 1/128 wide, in units of 2^-19.

    The line of a segment is its chord, shifted up by half its largest distance from the curve.
    """
    unit, width = 2**_START_BITS, 8 / _SEGMENTS
    table = []
    for segment in range(_SEGMENTS):
        left, right = math.tanh(segment * width), math.tanh((segment + 1) * width)
        slope = (right - left) / width
        touch = math.sqrt(max(0.0, 1 - slope))  # tanh where its slope is the chord's
        gap = touch - (left + slope * (math.atanh(touch) - segment * width))
        table.append((min(round(unit * (left + gap / 2)), unit - 1), round(unit * (right - left))))
    return tuple(table)


class LogitCap(wiring.Component):
    """Caps the logits of one or two rows.

    ``rows``: 1 or 2.

    Behaviour
    ---------
    Stages: magnitude; table; gain times distance into the segment; sum; times cap; round.

    Why
    ---
    Two rows share a table, as a block RAM has two ports.
    """

    CAP_LATENCY = 4
    LATENCY = 6

    def __init__(self, *, rows: int) -> None:
        self._rows = rows
        logits = signed(LOGIT_BITS)
        super().__init__(
            {
                #: x, the logit over the cap, 18 fraction bits; without a cap the logit itself.
                "i": In(logits).array(rows),
                #: Cap in log2 units, 12 fraction bits, 0 for none, of the ``i`` `CAP_LATENCY` cycles ago.
                "cap": In(CAP_BITS),
                "o": Out(logits).array(rows),  #: Logits of the ``i`` `LATENCY` cycles ago.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        words = [(gain << _START_BITS) | start for start, gain in tanh_table()]
        m.submodules.table = table = memory.Memory(
            shape=unsigned(_START_BITS + _GAIN_BITS),
            depth=_SEGMENTS,
            init=words,
            attrs={"ram_style": "block"},
        )
        none = Signal()
        m.d.sync += none.eq(self.cap == 0)
        for row in range(self._rows):
            given = self.i[row]
            magnitude = Signal(LOGIT_BITS, name=f"magnitude_{row}")
            clamped = Signal(_MAGNITUDE_BITS, name=f"clamped_{row}", reset_less=True)
            gained = Signal(_GAIN_BITS + _WITHIN_BITS, name=f"gained_{row}", reset_less=True)
            start = Signal(_START_BITS, name=f"start_{row}", reset_less=True)
            tanh = Signal(_TANH_BITS, name=f"tanh_{row}", reset_less=True)
            product = Signal(signed(_TANH_BITS + CAP_BITS + 1), name=f"product_{row}", reset_less=True)
            within = delay(m, f"within_{row}", clamped[:_WITHIN_BITS], 1, reset=False)
            past = delay(m, f"past_{row}", given, LogitCap.LATENCY - 1, reset=False)
            negative = delay(m, f"negative_{row}", given[-1], LogitCap.CAP_LATENCY, reset=False)
            get = table.read_port()
            line = Signal(_START_BITS + _WITHIN_BITS + 1, name=f"line_{row}")
            rounded = Signal(_TANH_BITS + 1, name=f"rounded_{row}")
            bent = Signal(signed(_TANH_BITS + 1), name=f"bent_{row}")
            m.d.comb += [
                magnitude.eq(Mux(given[-1], -given, given)),
                get.addr.eq(clamped[_WITHIN_BITS:]),
                line.eq((start << _WITHIN_BITS) + gained),
                rounded.eq(round_half_up(line, _TANH_SHIFT)),
                bent.eq(Mux(negative, -tanh, tanh)),
            ]
            m.d.sync += [
                clamped.eq(Mux(magnitude[_MAGNITUDE_BITS:].any(), -1, magnitude)),
                gained.eq(get.data[_START_BITS:] * within),
                start.eq(get.data[:_START_BITS]),
                tanh.eq(Mux(rounded[-1], -1, rounded)),
                product.eq(bent * self.cap),
                self.o[row].eq(Mux(none, past, round_half_up(product, _TANH_BITS))),
            ]
        return m
