"""Query side: loads the queries of the next pass and the settings of their rows, for all streams."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core.command import PART_LATENCY, QueryCommand
from hw.attention.core.drain import PassResult
from hw.attention.core.row.score import QueryPlace
from hw.attention.core.settings import RowSettings
from hw.attention.core.timing import CoreTiming
from hw.lib.delay import delay
from hw.lib.fifo import Fifo

#: Passes between the loading of their queries and the division of their sums.
_PASSES = 8


class QuerySide(wiring.Component):
    """Loads queries.

    Behaviour
    ---------
    A part a cycle.  A pass is offered to all streams in the cycle after its last part.  The next pass loads
    from the cycle in which the last stream takes this one.  A pass that decodes is offered to stream 0, and
    the next pass loads later by the delay of `KeySide`.  A row's settings are taken with its last part.
    ``ready`` of each input depends on ``valid`` of all inputs.

    An empty pass is offered to no stream, so its parts are taken even while both banks are in use.  If a bank
    is free, it may be unknown until the last part whether the pass is empty.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        elements = data.ArrayLayout(signed(8), config.lanes)
        members = {
            #: ``i_*``: see `hw.attention.core.command`.
            "i_command": In(stream.Signature(QueryCommand(config))),
            "i_row": In(stream.Signature(RowSettings(config))),
            "i_query": In(stream.Signature(elements)),
            "i_empty": In(stream.Signature(1)),
            #: ``query``, ``place``, ``load``: to the rows of all streams; a query of an even row also goes to
            #: the row behind it.
            "query": Out(elements),
            "place": Out(QueryPlace(config)),
            "load": Out(config.rows),
            #: ``settings``, ``configure``: to the rows of all streams, ``timing.adopt + 1`` cycles after the
            #: query.
            "settings": Out(RowSettings(config)),
            "configure": Out(config.rows),
            #: A loaded pass waits that this stream has not taken.
            "loaded": Out(config.streams),
            "take": In(config.streams),  #: The stream takes it.
            "waiting": Out(1),  #: A command waits that is not loaded.
            #: Every pass that is not empty, once it is loaded.
            "o": Out(stream.Signature(QueryCommand(config))),
            "results": Out(stream.Signature(PassResult(config))),  #: Every pass once it is loaded.
        }
        if config.decodes:
            members |= {
                #: ``decode``, ``restart``: see `hw.attention.core.core.AttentionCore`.
                "decode": In(1),
                "restart": In(1),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, command = self._config, self.i_command.payload
        m.submodules.passes = passes = Fifo(QueryCommand(config), depth=_PASSES)
        connect(m, passes.o, flipped(self.o))

        row = Signal(range(config.rows))
        # the row plus 1, in a register: all inputs wait for its comparison
        after = Signal(range(config.rows + 1), init=1)
        place = Signal(QueryPlace(config))
        ready, room, take, load, offers = (
            Signal(name=name) for name in ("there", "room", "take", "load", "offers")
        )
        ends_row = Signal()
        last = Signal()
        ends_pass = Signal()
        known, empty = self.i_empty.valid, self.i_empty.payload
        in_use: Any = (self.loaded & ~self.take).any()
        offered: Any = -1
        if config.decodes:
            # The queries of the pass before are still picked: keys of a pass that decodes arrive late.
            late = Signal(range(PART_LATENCY - 1))
            with m.If(self.take[0]):
                m.d.sync += late.eq(PART_LATENCY - 2)
            with m.Elif(late != 0):
                m.d.sync += late.eq(late - 1)
            in_use |= self.decode & (self.loaded[0] | (late != 0))
            offered = Mux(self.decode, 1, -1)
        m.d.comb += [
            ends_row.eq(place.part == command.last_key_part),
            last.eq(ends_row & (after == command.rows)),
            ready.eq(
                self.i_command.valid & passes.i.ready & self.results.ready & (self.i_row.valid | ~ends_row)
            ),
            # `in_use` is the latest signal.
            room.eq((ready & known & empty) | ((ready & (known | ~last)) & ~in_use)),
            take.eq(room & self.i_query.valid),
            load.eq(take & ~in_use),
            ends_pass.eq(take & last),
            offers.eq(ends_pass & ~empty),
            self.i_query.ready.eq(room),
            self.i_row.ready.eq(take & ends_row),
            self.i_command.ready.eq(ends_pass),
            self.i_empty.ready.eq(ends_pass),
            self.waiting.eq(self.i_command.valid),
            passes.i.payload.eq(command),
            passes.i.valid.eq(offers),
            self.results.payload.rows.eq(command.rows),
            self.results.payload.units.eq(command.value_units),
            self.results.payload.empty.eq(empty),
            self.results.valid.eq(ends_pass),
        ]
        m.d.sync += [
            self.loaded.eq(Mux(offers, offered, self.loaded & ~self.take)),
            # The rows of a cell share a multiplier.  The second row, which may have no query, takes the first
            # row's before its own, so its operands are always defined.
            *(self.load[n].eq(load & (row[1:] == n >> 1 if n % 2 else row == n)) for n in range(config.rows)),
            # In every cycle, as only `load` makes them count: an enable would have 8 D loads.
            self.query.eq(self.i_query.payload),
            self.place.eq(place),
        ]
        with m.If(take):
            m.d.sync += place.part.eq(Mux(ends_row, 0, place.part + 1))
            with m.If(ends_row):
                m.d.sync += [row.eq(after), after.eq(after + 1)]
        with m.If(ends_pass):
            m.d.sync += [row.eq(0), after.eq(1)]
        with m.If(offers):
            m.d.sync += place.bank.eq(~place.bank)
        if config.decodes:
            with m.If(self.restart):
                m.d.sync += place.bank.eq(0)

        configure = Signal(config.rows)
        later = 2 + CoreTiming(config).adopt  # one more for the register of a part
        m.d.comb += [
            configure.eq(Mux(load & ends_row, 1 << row, 0)),
            self.configure.eq(delay(m, "configure", configure, later)),
            self.settings.eq(delay(m, "settings", self.i_row.payload, later, reset=False)),
        ]
        return m
