"""Query rows against one stream of keys and values: the cell that the core places for every two rows."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import CAP_BITS, KEY_BITS, AttentionConfig
from hw.attention.core.result.finals import Final, FinalRead, Finals
from hw.attention.core.row.exp2 import Exp2
from hw.attention.core.row.logit import LogitUnit
from hw.attention.core.row.maximum import LogitBuffer, LogitRead, LogitWrite
from hw.attention.core.row.merge import Merge, MergeStep
from hw.attention.core.row.score import QueryPick, QueryPlace, ScoreUnit
from hw.attention.core.row.value import ValueStep, ValueUnit
from hw.attention.core.settings import RowSettings
from hw.lib.delay import delay

#: Bits of a part that share a register which says whose part it is.
_CHOICE_BITS = 256


class RowControl(data.StructLayout):
    """What every row of a stream does in a cycle, each member for the stage it belongs to (`CoreTiming`)."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "place": QueryPlace(config),  #: Where the part on ``query`` goes, see `ScoreUnit`.
                #: What the next query of the rows on ``configure`` is told, see `LogitUnit`.
                "settings": RowSettings(config),
                #: Which part of the queries the part of the key in the next cycle meets, see `ScoreUnit`.
                "pick": QueryPick(config),
                #: ``accumulate``, ``first``: there is a part of a key, and it is its first, see `ScoreUnit`.
                "accumulate": 1,
                "first": 1,
                "adopt": 1,  #: Change of settings, see `LogitUnit`.
                "key": KEY_BITS,  #: Index of a key in its head.
                "cap": CAP_BITS if config.logit_cap else 0,  #: With ``logit_cap`` only: c, 0 for none.
                #: ``write``, ``read``: see `LogitBuffer`.
                "write": LogitWrite(config),
                "read": LogitRead(config),
                "exponent": 1,  #: A logit read one cycle ago is on the way to the exponential.
                "value": ValueStep(config),  #: See `ValueUnit`.
                "merge": MergeStep(config),  #: See `Merge`.
                "final": FinalRead(config),  #: Lanes to the results, see `Finals`.
                "sum_bank": 1,  #: With several streams only: whose sums go to the results, see `Finals`.
            }
        )


def row_cells(config: AttentionConfig) -> list[tuple[int, int]]:
    """Return first row and number of rows of each cell: pairs, and a single one at the end of an odd
    number.
    """
    return [(row, min(2, config.rows - row)) for row in range(0, config.rows, 2)]


class AttentionRows(wiring.Component):
    """One or two query rows of one stream.

    ``rows``: 1 or 2: see `row_cells`.

    Behaviour
    ---------
    A row has no handshake: ``control`` starts each stage, at the times of `CoreTiming`.  Rows differ in their
    data only.  All inputs are registered in the cell: control and queries in its own registers, keys and
    values in those of the multipliers.

    Why
    ---
    A control bit has some 500 loads here.  Without registers of its own for each cell, whose inputs are all
    that is between cells, it was one net of 9,000 over all dies.

    Queries are loaded under the computation of the pass before, into the bank that this does not use: from
    the cycle of its first pick on, and up to the cycle before their own.  Settings go the same way with a
    delay: a pass's ``adopt`` comes ``timing.adopt + 1`` cycles after its first pick, and ``configure`` should
    come as long after ``load``.
    """

    def __init__(self, config: AttentionConfig, *, rows: int) -> None:
        self._config = config
        self._rows = rows
        elements = data.ArrayLayout(signed(8), config.lanes)
        members = {
            "control": In(RowControl(config)),  #: The same for all rows of a stream.
            #: ``query`` is a part of these rows' next queries.
            "load": In(rows),
            "query": In(elements),
            "configure": In(rows),  #: ``control.settings`` are those of these rows' next queries.
            "key": In(elements),
            "value": In(elements),
            "o": Out(Final(config)).array(rows),  #: See `Finals`.
            #: How many logits of a cycle, of visible pairs, did not fit their 24 bits.
            "saturated": Out(range(rows + 1)),
        }
        if config.decodes:
            members |= {
                #: ``decode``, ``own_key``, ``own_value``: take these parts instead.  ``decode`` changes
                #: while nothing is under way.
                "decode": In(1),
                "own_key": In(elements),
                "own_value": In(elements),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Join the units, behind a register of every input."""
        m = Module()
        config = self._config
        # Not even control needs a reset: it comes from registers that have one, a cycle before this cell has.
        control, load, configure, query = (
            delay(m, name, getattr(self, name), 1, reset=False)
            for name in ("control", "load", "configure", "query")
        )
        m.submodules.score = score = ScoreUnit(config, rows=self._rows)
        m.submodules.logit = logit = LogitUnit(config, rows=self._rows)
        m.d.comb += [
            score.query.eq(query),
            score.place.eq(control.place),
            score.load.eq(load),
            score.pick.eq(control.pick),
            score.key.eq(self._chosen(m, "key")),
            score.accumulate.eq(control.accumulate),
            score.first.eq(control.first),
            logit.settings.eq(control.settings),
            logit.configure.eq(configure),
            logit.adopt.eq(control.adopt),
            logit.key.eq(control.key),
            logit.cap.eq(control.cap),
        ]
        value = self._chosen(m, "value")
        for row in range(self._rows):
            m.d.comb += logit.i[row].eq(score.o[row])
            self._probabilities(m, row, control, logit, value)
        counted = logit.cut & logit.visible & control.write.valid.replicate(self._rows)
        m.d.sync += self.saturated.eq(sum(counted))
        return m

    def _chosen(self, m: Module, name: str) -> Any:
        """Return the part that is broadcast, or in passes that decode the cell's own."""
        given = getattr(self, name)
        if not self._config.decodes:
            return given
        bits = Value.cast(given)
        own = Value.cast(getattr(self, f"own_{name}"))
        chosen = Signal(data.ArrayLayout(signed(8), self._config.lanes), name=f"chosen_{name}")
        for low in range(0, len(bits), _CHOICE_BITS):
            # Equal registers, which are not to become one.
            decode = Signal(name=f"decode_{name}_{low}", attrs={"keep": 1})
            m.d.sync += decode.eq(self.decode)
            piece = slice(low, low + _CHOICE_BITS)
            m.d.comb += Value.cast(chosen)[piece].eq(Mux(decode, own[piece], bits[piece]))
        return chosen

    def _probabilities(self, m: Module, row: int, control: Any, logit: LogitUnit, value: Any) -> None:
        """Make the stages behind a row's logits."""
        config = self._config
        m.submodules[f"logits_{row}"] = logits = LogitBuffer(config)
        m.submodules[f"exp2_{row}"] = exp2 = Exp2(config)
        m.submodules[f"values_{row}"] = values = ValueUnit(config)
        m.submodules[f"merge_{row}"] = merge = Merge(config)
        m.submodules[f"finals_{row}"] = finals = Finals(config)
        # As late as the others; of its own, as it has many loads.
        final = Signal(FinalRead(config), name=f"final_{row}", reset_less=True, attrs={"keep": 1})
        m.d.sync += final.eq(self.control.final)
        m.d.comb += [
            logits.i.eq(logit.o[row]),
            logits.i_visible.eq(logit.visible[row]),
            logits.write.eq(control.write),
            logits.read.eq(control.read),
            exp2.i.eq(logits.o),
            exp2.maximum.eq(logits.maximum),
            exp2.valid.eq(control.exponent & logits.o_visible),
            values.probability.eq(exp2.o),
            values.value.eq(value),
            values.step.eq(control.value),
            values.rise.eq(logits.rise),
            values.reached.eq(logits.reached),
            values.merge_begins.eq(control.merge.begins),
            values.merge_step.eq(control.merge.step),
            merge.control.eq(control.merge),
            merge.partial.eq(values.partial),
            merge.partial_sum.eq(values.partial_sum),
            *(merge.rise[n].eq(rise) for n, rise in enumerate(values.finished_rise)),
            merge.reached.eq(values.finished_reached),
            finals.i.eq(merge.o),
            finals.total.eq(merge.total),
            finals.maximum.eq(merge.maximum),
            finals.read.eq(final),
            finals.sum_bank.eq(control.sum_bank),
            self.o[row].eq(finals.o),
        ]
