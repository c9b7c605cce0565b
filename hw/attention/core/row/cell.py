"""Query rows against one stream of keys and values: the cell that the core places for each pair of rows."""

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

#: Bits of a part for each register that selects it.
_CHOICE_BITS = 256


class RowControl(data.StructLayout):
    """Control of all rows of a stream in a cycle, each member for its stage (`CoreTiming`)."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "place": QueryPlace(config),  #: Destination of the part on ``query``, see `ScoreUnit`.
                #: Settings of the next query of the rows on ``configure``, see `LogitUnit`.
                "settings": RowSettings(config),
                #: Part of the queries for the key's part in the next cycle, see `ScoreUnit`.
                "pick": QueryPick(config),
                #: ``accumulate``, ``first``: a part of a key is present, and it is the first, see
                #: `ScoreUnit`.
                "accumulate": 1,
                "first": 1,
                "adopt": 1,  #: Change of settings, see `LogitUnit`.
                "key": KEY_BITS,  #: Index of a key in its head.
                "cap": CAP_BITS if config.logit_cap else 0,  #: With ``logit_cap`` only: c, 0 for none.
                #: ``write``, ``read``: see `LogitBuffer`.
                "write": LogitWrite(config),
                "read": LogitRead(config),
                "exponent": 1,  #: The logit read one cycle ago enters the exponential.
                "value": ValueStep(config),  #: See `ValueUnit`.
                "merge": MergeStep(config),  #: See `Merge`.
                "final": FinalRead(config),  #: Lanes to the results, see `Finals`.
                "sum_bank": 1,  #: With several streams only: bank of the sums for the results, see `Finals`.
            }
        )


def row_cells(config: AttentionConfig) -> list[tuple[int, int]]:
    """Return first row and number of rows of each cell: pairs, and a single last one if rows are odd."""
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
    A control bit has some 500 loads here.  Without registers in each cell, whose inputs are all the nets
    between cells, it was one net of 9,000 loads over all dies.

    Queries are loaded during the pass before, into the other bank. They load from the cycle of that pass's
    first pick until the cycle before their own first pick.  Settings follow with a delay: ``adopt`` comes
    ``timing.adopt + 1`` cycles after the first pick of a pass, and ``configure`` must come as long after
    ``load``.
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
            #: Logits of visible pairs that were clamped to 24 bits in a cycle.
            "saturated": Out(range(rows + 1)),
        }
        if config.decodes:
            members |= {
                #: ``decode``, ``own_key``, ``own_value``: use these parts instead.  ``decode`` changes while
                #: the core is idle.
                "decode": In(1),
                "own_key": In(elements),
                "own_value": In(elements),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Join the units, behind a register of every input."""
        m = Module()
        config = self._config
        # Control needs no reset either: it comes from registers that have one, a cycle before this cell.
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
        """Return the broadcast part, or in passes that decode the cell's own part."""
        given = getattr(self, name)
        if not self._config.decodes:
            return given
        bits = Value.cast(given)
        own = Value.cast(getattr(self, f"own_{name}"))
        chosen = Signal(data.ArrayLayout(signed(8), self._config.lanes), name=f"chosen_{name}")
        for low in range(0, len(bits), _CHOICE_BITS):
            # Equal registers that tools must not merge.
            decode = Signal(name=f"decode_{name}_{low}", attrs={"keep": 1})
            m.d.sync += decode.eq(self.decode)
            piece = slice(low, low + _CHOICE_BITS)
            m.d.comb += Value.cast(chosen)[piece].eq(Mux(decode, own[piece], bits[piece]))
        return chosen

    def _probabilities(self, m: Module, row: int, control: Any, logit: LogitUnit, value: Any) -> None:
        """Place the stages behind a row's logits."""
        config = self._config
        m.submodules[f"logits_{row}"] = logits = LogitBuffer(config)
        m.submodules[f"exp2_{row}"] = exp2 = Exp2(config)
        m.submodules[f"values_{row}"] = values = ValueUnit(config)
        m.submodules[f"merge_{row}"] = merge = Merge(config)
        m.submodules[f"finals_{row}"] = finals = Finals(config)
        # The same delay as the others, in a register of its own, as it has many loads.
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
