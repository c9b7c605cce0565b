"""The walker: requests of a command, in the order of its loops."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.memory import ports, uninitialised
from hw.network.scratchpad.reader import GranuleRequest
from hw.network.tables.layouts import RowWrite
from hw.network.vector.config import VectorConfig
from hw.network.vector.layouts import TapRow, VectorFields

#: The loops, the innermost first.
_LOOPS = ("taps", "columns", "inner", "passes", "outer", "rows")
#: Requests that wait for the scratchpad; reads and results on their way.
_REQUESTS, AHEAD = 16, 64
#: Steps that are between the counters and the queues.
_LATENCY = 4


class Step(data.StructLayout):
    """One read of the window, or one of each port."""

    def __init__(self) -> None:
        super().__init__(
            {
                "first": 1,  #: First of its window.
                "last": 1,  #: Last of its window.
                "result": 1,  #: The window has a result.
                "ends_pass": 1,  #: Last of a pass.
                "joins": 1,  #: With ``first``: the window begins with the kept columns.
                "keeps": 1,  #: Its columns are kept for the next window.
                "keeps_first": 1,  #: The first that are kept.
                "keeps_second": 1,  #: Only the second column is kept.
                "inside": 2,  #: Whether each of both columns lies in the image.
            }
        )


class Place(data.StructLayout):
    """Where a result goes."""

    def __init__(self, config: VectorConfig) -> None:
        super().__init__({"address": config.shape.granule_address_bits, "enable": config.granules})


class _Follower:
    """A number that follows the loops: an address, or a column of the image."""

    def __init__(self, name: str, walk: Any) -> None:
        self._walk = walk
        shape = walk.start.shape()
        self.now = Signal(shape, name=f"{name}_now", reset_less=True)
        #: Its value at the beginning of the current round of each loop.
        self._bases = {
            loop: Signal(shape, name=f"{name}_{loop}", reset_less=True) for loop in ("inner", "outer", "row")
        }

    def start(self, start: Any) -> list[Any]:
        """Return assignments for the beginning of a command."""
        return [each.eq(start) for each in (self.now, *self._bases.values())]

    def step(self, m: Module, turns: dict[str, Signal]) -> None:
        """Follow the loop whose round ends; ``turns``: which one, at most one up."""
        walk, bases = self._walk, self._bases
        base = Mux(
            turns["rows"] | turns["outer"] | turns["passes"],
            Mux(turns["rows"], bases["row"], bases["outer"]),
            Mux(turns["inner"], bases["inner"], self.now),
        )
        further = Mux(
            turns["rows"] | turns["outer"] | turns["passes"],
            Mux(turns["rows"], walk.row, Mux(turns["outer"], walk.outer, 0)),
            Mux(turns["inner"], walk.inner, Mux(turns["columns"], walk.column, 0)),
        )
        following = Signal.like(self.now, name=f"{self.now.name}_next")
        m.d.comb += following.eq(base + further)
        m.d.sync += self.now.eq(following)
        # A loop's round begins with those of all loops within.
        outer = turns["outer"] | turns["rows"]
        with m.If(outer | turns["passes"] | turns["inner"]):
            m.d.sync += bases["inner"].eq(following)
        with m.If(outer):
            m.d.sync += bases["outer"].eq(following)
        with m.If(turns["rows"]):
            m.d.sync += bases["row"].eq(following)


class VectorWalker(wiring.Component):
    """Asks for the words of a command.

    Behaviour
    ---------
    A step a cycle.  ``step`` has one entry for each, ``place`` one for each result.  ``requests``: for the
    first operand of each step, and for the second if the command reads one.  The next command begins when the
    steps of this one are issued.
    """

    def __init__(self, config: VectorConfig) -> None:
        self._config = config
        request = stream.Signature(GranuleRequest(config.shape))
        super().__init__(
            {
                "begin": In(1),
                "command": In(VectorFields(config)),  #: Stays from ``begin`` on.
                "active": Out(1),  #: Steps are still to come.
                "taps": In(RowWrite(config.taps, TapRow(config))),
                "requests": Out(request).array(2),
                "step": Out(stream.Signature(Step())),
                "place": Out(stream.Signature(Place(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Counters of the loops -> row of the window -> sums -> bounds -> queues."""
        m = Module()
        command = self.command
        go = Signal()
        running = Signal()
        last = self._count(m, go, running)
        walks = {name: getattr(command, name) for name in ("first", "second", "target", "column")}
        followers = {name: _Follower(name, walk) for name, walk in walks.items()}
        row = Signal(command.column.start.shape(), reset_less=True)
        turns = self._turns(m, last)
        with m.If(go):
            for follower in followers.values():
                follower.step(m, turns)
            with m.If(turns["rows"]):
                m.d.sync += row.eq(row + command.stride_y)
        with m.If(self.begin):
            m.d.sync += [
                row.eq(0),
                *(each for name, follower in followers.items() for each in follower.start(walks[name].start)),
            ]
        now = {name: follower.now for name, follower in followers.items()} | {"row": row}
        pushed, requests, step, place, has_result = self._pipeline(m, go, last, now)
        room = self._queue(m, pushed, requests, step, place, has_result)
        m.d.comb += go.eq(running & room)
        # The last steps are queued, and seen behind the queues, some cycles later.
        late = Signal(range(_LATENCY + 2))
        with m.If(running):
            m.d.sync += late.eq(_LATENCY + 1)
        with m.Elif(late != 0):
            m.d.sync += late.eq(late - 1)
        m.d.comb += self.active.eq(running | (late != 0))
        return m

    def _count(self, m: Module, go: Signal, running: Signal) -> dict[str, Signal]:
        """Count all loops; return whether each is in its last round."""
        command = self.command
        left = {loop: Signal.like(command[loop], name=f"{loop}_left", reset_less=True) for loop in _LOOPS}
        last = {loop: Signal(name=f"{loop}_last", reset_less=True) for loop in _LOOPS}
        within: Value | None = None
        for loop in _LOOPS:
            with m.If(self.begin | (go & (last[loop] if within is None else within & last[loop]))):
                m.d.sync += [left[loop].eq(command[loop] - 1), last[loop].eq(command[loop] == 1)]
            with m.Elif(go if within is None else go & within):
                m.d.sync += [left[loop].eq(left[loop] - 1), last[loop].eq(left[loop] == 1)]
            within = last[loop] if within is None else within & last[loop]
        with m.If(self.begin):
            m.d.sync += running.eq(1)
        with m.Elif(go & within):
            m.d.sync += running.eq(0)
        return last

    def _turns(self, m: Module, last: dict[str, Signal]) -> dict[str, Signal]:
        """Return the loop whose next round begins."""
        turns: dict[str, Signal] = {}
        for n, loop in enumerate(_LOOPS):
            turns[loop] = Signal(name=f"{loop}_turns")
            within = Cat(1, *(last[each] for each in _LOOPS[:n])).all()
            m.d.comb += turns[loop].eq(within & ~last[loop])
        return turns

    def _pipeline(
        self, m: Module, go: Signal, last: dict[str, Signal], now: dict[str, Signal]
    ) -> tuple[Value, list[tuple[Value, Value]], Any, Any, Value]:
        """Add the row of the window, and compare with the image.

        Returns whether a step arrives, both requests, the step, the place of its result, and whether it has
        one.
        """
        command, config = self.command, self._config
        tap = Signal(range(config.taps), reset_less=True)
        column = Signal.like(command.keep_column, reset_less=True)
        first = Signal(reset_less=True)
        first_tap = Signal(reset_less=True)
        begins_row = Signal(reset_less=True)
        window_ends = last["taps"] & last["columns"]
        with m.If(go):
            m.d.sync += [
                tap.eq(Mux(last["taps"], command.first_tap, tap + 1)),
                first_tap.eq(last["taps"]),
                first.eq(window_ends),
            ]
            with m.If(last["taps"]):
                m.d.sync += column.eq(Mux(last["columns"], 0, column + 1))
            with m.If(window_ends):
                m.d.sync += begins_row.eq(last["inner"])
        with m.If(self.begin):
            m.d.sync += [
                tap.eq(command.first_tap),
                first_tap.eq(1),
                first.eq(1),
                column.eq(0),
                begins_row.eq(1),
            ]

        window = self._window(m, tap)
        step = Signal(Step(), name="step_0", reset_less=True)
        last_word = Signal(reset_less=True)
        m.d.sync += [
            step.first.eq(first),
            step.last.eq(window_ends),
            step.result.eq(last["passes"] & ~(begins_row & command.reuses) & ~command.silent),
            step.ends_pass.eq(last["inner"] & window_ends),
            step.joins.eq(command.reuses),
            step.keeps.eq(command.reuses & (column >= command.keep_column)),
            step.keeps_first.eq(first_tap & (column == command.keep_column)),
            step.keeps_second.eq(command.keep_second & (column == command.keep_column)),
            step.inside.eq(Cat(1, ~(command.odd & last["columns"]))),
            last_word.eq(Mux(command.words_inner, last["inner"], last["outer"])),
        ]
        places = {name: delay(m, f"early_{name}", now[name], 2, reset=False) for name in now}
        sums = {
            name: Signal.like(places[like], name=f"{name}_sum", reset_less=True)
            for name, like in {
                "first": "first", "second": "second", "row": "row", "column": "column", "next": "column",
            }.items()
        }  # fmt: skip
        m.d.sync += [
            sums["first"].eq(places["first"] + window.offset),
            sums["second"].eq(places["second"] + Mux(command.pairs, window.offset, 0)),
            sums["row"].eq(places["row"] + window.row),
            sums["column"].eq(places["column"] + window.column),
            sums["next"].eq(places["column"] + window.column + command.pair_step),
        ]
        step, last_word = delay(m, "step", step, 2, reset=False), delay(m, "last_word", last_word, 2)
        row_inside = sums["row"].as_unsigned() < command.height
        inside = Cat(row_inside & (sums[name].as_unsigned() < command.width) for name in ("column", "next"))
        # A second operand has no bounds.
        inside = (inside | Cat(0, ~command.pairs)) & step.inside & Cat(1, command.reads_second)
        every = Cat(1 for _ in range(config.granules))
        enable = Mux(last_word, command.last_enable, every)
        checked = Signal(Step(), reset_less=True)
        place = Signal(Place(config), name="place_held", reset_less=True)
        addresses = [Signal.like(sums[name], name=f"{name}_address") for name in ("first", "second")]
        # Of a pixel that is read word by word, the last word has granules of its own.
        reads = [
            Signal(config.granules, name=f"{name}_reads", reset_less=True) for name in ("first", "second")
        ]
        m.d.sync += [
            Value.cast(checked).eq(Value.cast(step)),
            checked.inside.eq(inside),
            place.enable.eq(enable),
            place.address.eq(delay(m, "late_target", places["target"], 1, reset=False)),
            *(a.eq(sums[name]) for a, name in zip(addresses, ("first", "second"), strict=True)),
            *(
                read.eq(
                    Mux(sums[name][: len(command.last_word)] == command.last_word, command.last_read, every)
                )
                for read, name in zip(reads, ("column", "next"), strict=True)
            ),
        ]
        requests = [
            (a, Mux(checked.inside[n], Mux(command.counts_words, read, place.enable), 0))
            for n, (a, read) in enumerate(zip(addresses, reads, strict=True))
        ]
        pushed = delay(m, "went", go, _LATENCY)
        return pushed, requests, checked, place, checked.last & checked.result

    def _window(self, m: Module, tap: Signal) -> Any:
        """Read a row of the window; return it two cycles later."""
        config = self._config
        m.submodules.taps = taps = uninitialised(
            width=TapRow(config).size, depth=config.taps, ram_style="block"
        )
        to_taps, from_taps = ports(taps)
        m.d.comb += [
            to_taps.en.eq(self.taps.enable),
            to_taps.addr.eq(self.taps.row),
            to_taps.data.eq(Value.cast(self.taps.data)),
            from_taps.en.eq(1),
            from_taps.addr.eq(tap),
        ]
        window = data.View(TapRow(config), Signal(TapRow(config).size, name="window", reset_less=True))
        m.d.sync += Value.cast(window).eq(from_taps.data)
        return window

    def _queue(
        self,
        m: Module,
        pushed: Value,
        requests: list[tuple[Value, Value]],
        step: Any,
        place: Any,
        has_result: Value,
    ) -> Signal:
        """Queue requests, steps and places; return whether all have room for those under way."""
        queues = {
            "steps": (Fifo(Step(), depth=AHEAD), self.step, Value.cast(step), pushed),
            "places": (
                Fifo(Place(self._config), depth=AHEAD), self.place, Value.cast(place), pushed & has_result,
            ),
        }  # fmt: skip
        for n, (address, enable) in enumerate(requests):
            item = Signal(GranuleRequest(self._config.shape), name=f"request_{n}")
            m.d.comb += [item.address.eq(address), item.enable.eq(enable)]
            queue = Fifo(GranuleRequest(self._config.shape), depth=_REQUESTS)
            asked = pushed & self.command.reads_second if n else pushed
            queues[f"requests_{n}"] = (queue, self.requests[n], Value.cast(item), asked)
        free = []
        for name, (queue, out, payload, push) in queues.items():
            m.submodules[name] = queue
            m.d.comb += [queue.i.valid.eq(push), Value.cast(queue.i.payload).eq(payload)]
            connect(m, queue.o, flipped(out))
            free.append(queue.level < queue.depth - _LATENCY - 2)
        room = Signal(init=1)
        m.d.sync += room.eq(Cat(free).all())
        return room
