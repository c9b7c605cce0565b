"""From raw scores to logits: scale, cap, distance, and visibility."""

from typing import Any

from amaranth.hdl import Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import CAP_BITS, KEY_BITS, LOGIT_BITS, SHIFT_BITS, AttentionConfig
from hw.attention.core.row.alibi import Alibi
from hw.attention.core.row.cap import LogitCap
from hw.attention.core.settings import RowSettings
from hw.lib.arithmetic.requantize import REQUANTIZE_LATENCY, requantize
from hw.lib.delay import delay


class LogitUnit(wiring.Component):
    """Logits of one or two rows.

    ``rows``: 1 or 2.

    Behaviour
    ---------
    A score a cycle.  Settings for the query after the next may arrive in the cycle of ``adopt``.
    """

    def __init__(self, config: AttentionConfig, *, rows: int) -> None:
        self._config = config
        self._rows = rows
        super().__init__(
            {
                #: Of the next query of the rows whose bit of ``configure`` is high.
                "settings": In(RowSettings(config)),
                "configure": In(rows),
                #: The settings of the next queries apply to scores from the next cycle on.
                "adopt": In(1),
                "i": In(signed(config.score_bits)).array(rows),  #: Raw scores.
                "key": In(KEY_BITS),  #: Index of their key.
                #: With ``logit_cap`` only: cap of the scores `cap_latency` cycles ago, 0 for none.
                "cap": In(CAP_BITS if config.logit_cap else 0),
                #: ``o``, ``visible``: logits t of the scores `latency` cycles ago, and whether the rows see
                #: their key; a row without settings for these queries sees none.
                "o": Out(signed(LOGIT_BITS)).array(rows),
                "visible": Out(rows),
                "cut": Out(rows),  #: Beside ``o``: the scaled score was clamped to 24 bits, without a cap.
            }
        )

    @staticmethod
    def cap_latency(config: AttentionConfig) -> int:
        """Return the cycles from a score to its cap."""
        return REQUANTIZE_LATENCY + LogitCap.CAP_LATENCY

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Return the cycles from a score to its logit."""
        cap = LogitCap.LATENCY if config.logit_cap else 0
        return REQUANTIZE_LATENCY + cap + (Alibi.LATENCY - Alibi.LOGIT_LATENCY if config.alibi else 0)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        adopted = Signal()
        m.d.sync += adopted.eq(self.adopt)
        if config.logit_cap:
            m.submodules.cap = cap = LogitCap(rows=self._rows)
            m.d.comb += cap.cap.eq(self.cap)
        for row in range(self._rows):
            following = Signal(RowSettings(config), name=f"following_{row}", reset_less=True)
            settings = Signal(RowSettings(config), name=f"settings_{row}", reset_less=True)
            shift = Signal(SHIFT_BITS, name=f"shift_{row}", reset_less=True)
            # Whether the row has a query: the last pass of a head may have fewer queries than rows.
            awaited, used = Signal(name=f"awaited_{row}"), Signal(name=f"used_{row}")
            with m.If(self.configure[row]):
                m.d.sync += following.eq(self.settings)
            with m.If(self.adopt):
                m.d.sync += [settings.eq(following), used.eq(awaited)]
            m.d.sync += awaited.eq(self.configure[row] | (awaited & ~self.adopt))
            with m.If(adopted):  # a cycle behind the multiplier
                m.d.sync += shift.eq(settings.shift)

            cut = Signal(name=f"cut_{row}", reset_less=True)
            logit: Any = requantize(
                m,
                self.i[row],
                settings.multiplier,
                shift,
                signed(LOGIT_BITS),
                names=(f"product_{row}", f"halves_{row}", f"scaled_{row}"),
                cut=cut,
            )
            seen = Signal(name=f"seen_{row}", reset_less=True)
            m.d.sync += seen.eq(used & (self.key >= settings.first) & (self.key < settings.end))
            if config.logit_cap:
                m.d.comb += cap.i[row].eq(logit)
                logit = cap.o[row]
            if config.alibi:
                logit = self._alibi(m, row, settings, logit)
            latency = LogitUnit.latency(config)
            m.d.comb += [
                self.o[row].eq(logit),
                self.visible[row].eq(delay(m, f"seen_{row}", seen, latency - 1, reset=False)),
                self.cut[row].eq(self._uncapped(m, row, cut)),
            ]
        return m

    def _uncapped(self, m: Module, row: int, cut: Value) -> Value:
        """Return ``cut`` of scores without a cap: a cap limits its logits as specified."""
        config, left = self._config, LogitUnit.latency(self._config) - REQUANTIZE_LATENCY
        if config.logit_cap:
            cut = delay(m, f"cut_{row}", cut, LogitCap.CAP_LATENCY, reset=False) & (self.cap == 0)
            left -= LogitCap.CAP_LATENCY
        return delay(m, f"cut_uncapped_{row}", cut, left, reset=False)

    def _alibi(self, m: Module, row: int, settings: Any, logit: Any) -> Any:
        """Subtract the distance, delayed by the latency of the cap."""
        late = LogitCap.LATENCY if self._config.logit_cap else 0
        m.submodules[f"alibi_{row}"] = alibi = Alibi()
        m.d.comb += [
            alibi.key.eq(delay(m, f"key_{row}", self.key, late, reset=False)),
            alibi.position.eq(delay(m, f"position_{row}", settings.position, late, reset=False)),
            alibi.slope.eq(delay(m, f"slope_{row}", settings.slope, late + 1, reset=False)),
            alibi.i.eq(logit),
        ]
        return alibi.o
