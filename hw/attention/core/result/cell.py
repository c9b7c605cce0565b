"""From final sums to results: the cell that the core places for each pair of rows, behind all streams."""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.finals import Final
from hw.attention.core.result.gather import Gather, GatherStep
from hw.attention.core.result.normalize import Normalizer, NormalizeStep
from hw.attention.core.result.output import OutputBuffer, OutputRead
from hw.attention.core.result.reciprocal import Divide, Reciprocal
from hw.lib.arithmetic.adder_tree import adder_tree
from hw.lib.delay import delay
from hw.lib.loads import LOADS, copies


class ResultControl(data.StructLayout):
    """Control of all rows' results in a cycle, each member for its stage.

    The stages' times are those of `hw.attention.core.timing.CoreTiming`.
    """

    def __init__(self, config: AttentionConfig, beat_width: int) -> None:
        members = {
            #: With several streams only: the sums of a query tile are final in all.  Their bank is
            #: ``sum_bank`` of the streams' `RowControl` in the same cycle.
            "combine": 1,
            "divide": Divide(config),  #: Start of the reciprocal, see `Reciprocal`.
            #: See `Normalizer`; ``final`` of the streams' `RowControl` reads the lanes in the same cycle.
            "normalize": NormalizeStep(config),
            #: See `OutputBuffer`; for the row of ``drained`` of `ResultRows`.
            "drain": OutputRead(config, beat_width),
        }
        if config.decodes:
            members |= {
                #: ``decode``, ``gather``: the pass is one that decodes; see `Gather`.
                "decode": 1,
                "gather": GatherStep(config),
            }
        super().__init__(members)


class ResultRows(wiring.Component):
    """Results of one or two query rows.

    ``rows``: 1 or 2: see `hw.attention.core.row.cell.row_cells`. ``gathers``: with ``decode`` of the
    configuration: whether these rows have the results of passes that decode.
    """

    def __init__(self, config: AttentionConfig, *, rows: int, beat_width: int, gathers: bool = False) -> None:
        self._config = config
        self._rows = rows
        self._beat_width = beat_width
        self._gathers = gathers
        members: dict[str, Any] = {
            "control": In(ResultControl(config, beat_width)),  #: The same for all rows.
            #: Sums of each stream, from its `hw.attention.core.row.cell.AttentionRows`.
            "i": In(Final(config)).array(config.streams, rows),
            #: A bit for the row that ``drain`` of ``control`` reads, if it is in this cell.
            "drained": In(rows),
            #: Beat of that row, see `OutputBuffer`, a cycle later, as ``control`` is registered; 0 while no
            #: row reads.
            "o": Out(beat_width),
            #: Results of a cycle that were clamped.
            "saturated": Out(range(rows * config.merge_lanes + 1)),
        }
        if gathers:
            #: The same of all other cells of results, in order.
            members["others"] = In(Final(config)).array(config.ports - 1, config.streams, rows)
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Join the units."""
        m = Module()
        config = self._config
        control = delay(m, "control", self.control, 1, reset=False)  # the same delay as in the rows
        beats, cut = [], list[Value]()
        steps = delay(m, "normalize", control.normalize, Combine.lane_latency(config))
        if self._gathers:
            gathered = delay(m, "gathered", control.normalize, Gather.lane_latency(config))
            steps = Mux(control.decode, gathered, steps)
        for row in range(self._rows):
            m.submodules[f"combine_{row}"] = combine = Combine(config)
            m.submodules[f"reciprocal_{row}"] = reciprocal = Reciprocal(config)
            m.submodules[f"normalizer_{row}"] = normalizer = Normalizer(config)
            m.submodules[f"output_{row}"] = output = OutputBuffer(config, beat_width=self._beat_width)
            m.d.comb += [combine.i[n].eq(self.i[n][row]) for n in range(config.streams)]
            m.d.comb += [
                combine.start.eq(control.combine),
                combine.first.eq(control.normalize.valid & (control.normalize.step == 0)),
                reciprocal.i.eq(combine.total),
                reciprocal.start.eq(control.divide),
                normalizer.i.eq(combine.lanes),
                normalizer.control.eq(steps),
                normalizer.zeros.eq(reciprocal.zeros),
                normalizer.reciprocal.eq(reciprocal.o),
                output.i.eq(normalizer.o),
            ]
            if self._gathers:
                self._gather(m, row, control, reciprocal, normalizer)
            beats.append(self._read(m, row, output))
            cut.extend(bit & normalizer.o.valid for bit in normalizer.cut)
        m.d.comb += [
            self.o.eq(reduce(or_, beats)),
            self.saturated.eq(adder_tree(m, "cut", cut, len(self.saturated))),
        ]
        return m

    def _gather(
        self, m: Module, row: int, control: Any, reciprocal: Reciprocal, normalizer: Normalizer
    ) -> None:
        """In passes that decode select the sums of all cells, instead of those of this row's streams."""
        config = self._config
        m.submodules[f"gather_{row}"] = gather = Gather(config)
        m.d.comb += gather.step.eq(control.gather)
        for group, cells in enumerate((self.i, *self.others)):
            m.d.comb += [gather.i[group][n].eq(cells[n][row]) for n in range(config.streams)]
        # Equal registers, one for each signal that they select.
        chosen = copies(Signal(name=f"decode_{row}", reset_less=True), 1 + config.merge_lanes)
        m.d.sync += [own.eq(self.control.decode) for own in chosen]
        with m.If(chosen[0]):
            m.d.comb += reciprocal.i.eq(gather.total)
        for lane, own in enumerate(chosen[1:]):
            with m.If(own):
                m.d.comb += normalizer.i[lane].eq(gather.lanes[lane])

    def _read(self, m: Module, row: int, output: OutputBuffer) -> Value:
        """Return the beat that a row reads, and 0 while it does not read."""
        ports, drain = self._config.result_ports, self.control.drain
        slices = []
        valid = Signal(name=f"valid_{row}", attrs={"keep": 1})
        m.d.sync += valid.eq(drain.valid & self.drained[row])
        for port in range(ports):
            # Equal registers that tools must not merge: each has the loads of a slice.
            read = Signal(drain.shape(), name=f"read_{row}_{port}", attrs={"keep": 1})
            m.d.sync += [
                read.eq(drain),  # the same delay as `control`
                read.valid.eq(drain.valid & self.drained[row]),
            ]
            m.d.comb += output.read[port].eq(read)
            # Few loads: a beat may cross to another die, and is ORed with those of all rows.
            width = self._beat_width // ports
            for low in range(0, width, LOADS):
                reads = Signal(name=f"reads_{row}_{port}_{low}", attrs={"keep": 1})
                m.d.sync += reads.eq(valid)
                piece = output.o.word_select(port, width)[low : low + LOADS]
                slices.append(piece & reads.replicate(len(piece)))
        return Cat(slices)
