"""From a descriptor to the commands of units and movers."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.bypass_cut import BypassCommand
from hw.conv.core.layouts import OffsetCommand, Offsets, TapCommand
from hw.conv.core.pointwise.commands import BlockCommand, DrainCommand, SweepCommand
from hw.conv.core.route import Turn
from hw.conv.movers import descriptor as d
from hw.conv.movers.layouts import ADDRESS_BITS, GatherRead, MapRead, MapWrite, OffsetRead, WeightRead

#: Bits of the number of jobs that were issued and are not done.
_OPEN_BITS = 4


class Bases(data.StructLayout):
    """Base addresses that descriptors count from: ``maps`` of each port, ``weights``, ``offsets``."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "maps": data.ArrayLayout(ADDRESS_BITS, config.ports),
                "weights": ADDRESS_BITS,
                "offsets": ADDRESS_BITS,
            }
        )


class Dispatch(wiring.Component):
    """Issues one job at a time.

    Behaviour
    ---------
    Weights of a job are requested as soon as its descriptor has arrived.  All other commands are issued in
    one cycle, when every unit is ready.  A job with `AFTER` waits until all earlier jobs are in memory.
    """

    #: Cycles from a descriptor to its commands; from earlier jobs' end to the commands of one that waited for
    #: it.
    LATENCY: ClassVar = 1
    AFTER_LATENCY: ClassVar = 2

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        commands: dict[str, Any] = {
            #: ``tap``, ``offset``, ``block``, ``sweep``, ``drain``, ``bypass_block``, ``bypass_cut``,
            #: ``source_turns``, ``sink_turns``: to the core, see `hw.conv.core.core.ConvCore`.
            "tap": TapCommand(config),
            "offset": OffsetCommand(config),
            "block": BlockCommand(config),
            "sweep": SweepCommand(config),
            "drain": DrainCommand(config),
            "bypass_block": BlockCommand(config),
            "bypass_cut": BypassCommand(config),
            "read": MapRead(config),
            "bypass_read": MapRead(config),
            "write": MapWrite(config),
            "weight_read": WeightRead(),
            "offset_read": OffsetRead(config),
        }
        if config.gather_words:
            commands["gather"] = GatherRead(config)  #: The same map as ``read``, if the engine can gather.
        turns = Out(stream.Signature(Turn())).array(3)
        super().__init__(
            {
                "i": In(stream.Signature(8 * d.used_bytes(config))),
                "bases": In(Bases(config)),  #: Constant while jobs are issued.
                "written": In(1),  #: One-cycle pulse: the oldest job that was issued is in memory.
                "open": Out(1),  #: Such jobs exist.
                "total": Out(32),
                "source_turns": turns,
                "sink_turns": turns,
                **{name: Out(stream.Signature(layout)) for name, layout in commands.items()},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Wire fields to commands; flags select the commands of a job."""
        m = Module()
        config = self._config
        raw = self.i.payload
        field = {name: raw[8 * at : 8 * (at + size)] for name, (at, size) in d.fields(config).items()}
        flags = field["flags"]

        def has(flag: int) -> Any:
            return (flags & flag) != 0

        depthwise, pointwise = has(d.DEPTHWISE), has(d.POINTWISE)
        reverse = has(d.POINTWISE_FIRST)
        both = depthwise & pointwise
        offsets = has(d.FREE | d.SQUARE)

        # Units that this job needs, and whether they are ready.  `ready` is a cycle late: a unit only becomes
        # ready meanwhile.
        needs: list[tuple[Any, Any]] = [
            (self.tap, depthwise),
            (self.offset, depthwise & offsets),
            (self.offset_read, depthwise & offsets & ~has(d.DOT)),
            (self.block, pointwise),
            (self.sweep, pointwise),
            (self.drain, pointwise),
            (self.bypass_block, has(d.BYPASS)),
            (self.bypass_cut, has(d.BYPASS)),
            (self.bypass_read, has(d.BYPASS)),
            (self.read, 1),
            (self.write, 1),
            (self.source_turns[0], 1),
            (self.source_turns[1], depthwise),
            (self.source_turns[2], pointwise),
            (self.sink_turns[0], depthwise),
            (self.sink_turns[1], pointwise),
            (self.sink_turns[2], 1),
        ]
        if config.gather_words:
            needs.append((self.gather, has(d.GATHER)))
        ready = Signal()
        fresh = Signal(2)
        accept = Signal()
        asked = Signal()
        jobs = Signal(_OPEN_BITS)
        room = Signal()
        m.d.sync += [
            ready.eq(Cat(stream.ready | ~need for stream, need in needs).all()),
            fresh.eq((fresh << 1) | accept),
            room.eq(jobs < (1 << _OPEN_BITS) - 3),
            jobs.eq(jobs + accept - self.written),
            self.open.eq((jobs != 0) | accept),
        ]
        waited = Signal()
        m.d.sync += waited.eq(~has(d.AFTER) | ((jobs == 0) & ~accept))
        seen = Signal()  # the descriptor was valid a cycle ago
        m.d.sync += seen.eq(self.i.valid & ~accept)
        m.d.comb += [
            self.weight_read.valid.eq(self.i.valid & ~asked & ~fresh.any()),
            accept.eq(self.i.valid & seen & asked & ready & waited & room & ~fresh.any()),
            self.i.ready.eq(accept),
            *(stream.valid.eq(accept & need) for stream, need in needs),
            self.total.eq(field["out_total_words"]),
        ]
        with m.If(self.weight_read.valid & self.weight_read.ready):
            m.d.sync += asked.eq(1)
        with m.If(accept):
            m.d.sync += asked.eq(0)

        self._units(m, field, has, reverse, depthwise, pointwise)
        self._movers(m, field, has)
        by_row = depthwise & ~(both & reverse)
        memory_into = ~by_row
        m.d.comb += [
            self.read.payload.by_row.eq(by_row),
            self.read.payload.paired.eq(has(d.BYPASS)),
            self.bypass_read.payload.by_row.eq(0),
            self.bypass_read.payload.paired.eq(0),
            *self._turn(self.source_turns[0], memory_into, field["in_total_words"]),
            # ``other`` of a unit's results is 0 if they go to the other unit on chip, and 1 if they go to
            # memory.
            *self._turn(self.source_turns[1], ~(both & ~reverse), self._after(field, both & ~reverse)),
            *self._turn(self.source_turns[2], ~(both & reverse), self._after(field, both & reverse)),
            *self._turn(self.sink_turns[0], both & reverse, self._before(field, both & reverse)),
            *self._turn(self.sink_turns[1], both & ~reverse, self._before(field, both & ~reverse)),
            # ``other`` is 0 if words for memory come from the depthwise unit, 1 if from the pointwise one.
            *self._turn(self.sink_turns[2], pointwise & ~(both & reverse), field["out_total_words"]),
        ]
        return m

    def _turn(self, turn: Any, other: Any, words: Any) -> list[Any]:
        return [turn.payload.other.eq(other), turn.payload.words.eq(words)]

    def _after(self, field: Any, middle: Any) -> Any:
        return Mux(middle, field["middle_total_words"], field["out_total_words"])

    def _before(self, field: Any, middle: Any) -> Any:
        return Mux(middle, field["middle_total_words"], field["in_total_words"])

    def _units(self, m: Module, field: Any, has: Any, reverse: Any, depthwise: Any, pointwise: Any) -> None:
        """Drive the commands of the core's units."""
        tap, offset = self.tap.payload, self.offset.payload
        block, sweep, drain = self.block.payload, self.sweep.payload, self.drain.payload
        bypass, cut = self.bypass_block.payload, self.bypass_cut.payload
        same = (
            *("out_rows", "out_columns", "kernel_rows", "kernel_columns", "stride_rows", "stride_columns"),
            *("dilation_rows", "dilation_columns", "pad_rows", "pad_columns", "steps", "first_need"),
            *("first_free", "group_slices", "digits"),
        )
        m.d.comb += [
            *_copied(tap, field, same),
            *_copied(tap.fill, field, ("rows", "columns", "words", "slots", "row_words", "split")),
            tap.fill.strip.eq(has(d.STRIP)),
            tap.fill.asked.eq(~(pointwise & reverse)),
            tap.offsets.eq(Mux(has(d.FREE), Offsets.FREE, Mux(has(d.SQUARE), Offsets.SQUARE, Offsets.NONE))),
            tap.masked.eq(has(d.MASKED)),
            tap.gather.eq(has(d.GATHER)),
            *_copied(tap, field, ("entries",), "offset_"),
            tap.samples.eq(has(d.SAMPLES)),
            tap.dot.eq(has(d.DOT)),
            *_copied(tap, field, ("passes",), "offset_"),
            *_copied(tap.settings, field, ("zero", "low", "high"), "tap_"),
            tap.settings.raw.eq(has(d.TAP_RAW)),
            *_copied(offset, field, ("pixels", "entries", "low", "high"), "offset_"),
            offset.dot.eq(has(d.DOT)),
            *_copied(block, field, ("block", "last_block", "blocks")),
            *_copied(block, field, ("words",), "block_"),
            block.asked.eq(~depthwise | reverse),
            sweep.blocks.eq(block),
            *_copied(sweep, field, ("out_words",)),
            sweep.settings.zero.eq(0),
            *_copied(sweep.settings, field, ("low", "high"), "point_"),
            sweep.settings.raw.eq(has(d.POINT_RAW)),
            *_copied(drain, field, ("blocks",)),
            *_copied(drain, field, ("rows", "last_rows", "columns", "words", "parts"), "drain_"),
            drain.split.eq(has(d.SPLIT)),
            drain.double.eq(has(d.DOUBLE)),
            drain.shuffle.eq(has(d.BYPASS)),
            *_copied(drain, field, ("part_words",)),
            *_copied(bypass, field, ("block", "last_block", "blocks")),
            *_copied(bypass, field, ("words",), "bypass_"),
            bypass.asked.eq(1),
            cut.pixels.eq(field["bypass_total_pixels"]),
            *_copied(cut, field, ("parts", "channels"), "bypass_"),
        ]

    def _movers(self, m: Module, field: Any, has: Any) -> None:
        """Drive the commands of the movers; addresses of maps count from the port's base."""
        config, bases = self._config, self.bases
        for side, taker, words in (
            ("in", self.read, "in_words"),
            ("bypass", self.bypass_read, "bypass_in_words"),
        ):
            job = taker.payload
            sizes = ("rows", "chunks", "pixels", "last_pixels", "token_chunks")
            m.d.comb += [
                *_copied(job, field, sizes, f"{side}_"),
                job.words.eq(field[words]),
                *_copied(job, field, ("total_words",), f"{side}_"),
            ]
            for p in range(config.ports):
                port = job.ports[p]
                m.d.comb += [
                    port.address.eq(bases.maps[p] + field[f"{side}_address_{p}"]),
                    *(
                        port[name].eq(field[f"{side}_{name}_{p}"])
                        for name in ("pitch", "bytes", "last_bytes", "units")
                    ),
                ]
        if config.gather_words:
            gather = self.gather.payload
            m.d.comb += [self.offset.payload.tap.eq(self.tap.payload), gather.words.eq(field["in_words"])]
            for p in range(config.ports):
                m.d.comb += _copied(
                    gather.ports[p], self.read.payload.ports[p], ("address", "pitch", "units")
                )
        write = self.write.payload
        m.d.comb += _copied(write, field, ("rows", "parts", "words"), "out_map_")
        for p in range(config.ports):
            port = write.ports[p]
            m.d.comb += [
                port.address.eq(bases.maps[p] + field[f"out_address_{p}"]),
                *(port[name].eq(field[f"out_{name}_{p}"]) for name in ("pitch", "bytes", "units")),
            ]
        weights, offsets = self.weight_read.payload, self.offset_read.payload
        m.d.comb += [
            weights.address.eq(bases.weights + field["weights"]),
            weights.bytes.eq(field["weight_bytes"]),
            weights.tiles.eq(bases.weights + field["tiles"]),
            *_copied(weights, field, ("tile_bytes",)),
            weights.repeats.eq(field["tile_repeats"]),
            offsets.address.eq(bases.offsets + field["offsets"]),
            *_copied(offsets, field, ("bytes",), "offset_"),
            offsets.entries.eq(field["offset_total_entries"]),
            *_copied(offsets, field, ("units",), "offset_"),
            offsets.fields.eq(Mux(has(d.SQUARE), 1, Mux(has(d.MASKED), 3, 2))),
        ]


def _copied(target: Any, source: Any, names: tuple[str, ...], prefix: str = "") -> list[Any]:
    """Assign fields of ``source``, whose names begin with ``prefix``, to the fields of ``target``."""
    return [target[name].eq(source[prefix + name]) for name in names]
