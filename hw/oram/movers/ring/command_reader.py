"""Reads commands from a ring in host memory."""

from typing import Any, ClassVar, NamedTuple

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS
from hw.oram.core.session.record import SEQUENCE_BITS
from hw.oram.movers.blocks.bursts import BlockBursts

#: Bits of a slot's number in a ring, and of a number of operations.
SLOT_BITS = 32
OPERATIONS_BITS = 48
#: Bits of the cycles between two reads of an unwritten record.
POLL_BITS = 16
#: Bit of a record's first beat that ends a launch: the lowest of its flags.
STOP_BIT = SEQUENCE_BITS


class _Beats(NamedTuple):
    """A beat two cycles after the bus, and the result of its comparison."""

    valid: Value
    first: Value
    last: Value
    compared: Signal
    number: Signal
    equal: Signal
    stops: Signal


class _Checked(NamedTuple):
    """The end of a record, stored or dropped, and the state of the retry."""

    whole: Signal
    good: Signal
    drop: Signal
    dropping: Signal
    ending: Signal
    resume: Signal


class CommandReader(wiring.Component):
    """Prefetches commands, and reads one again that is not written yet.

    Behaviour
    ---------
    A request reads consecutive records: up to the last of ``config.ring_group``, of the ring, or of the
    launch. It is made in the first cycle in which they have room by the counts of the previous cycle.
    Requests are at least `SPACING` cycles apart, also from ``start``. At most ``config.command_records``
    records are requested or held. ``arvalid`` follows a request by `ADDRESS_LATENCY` cycles; ``arrived``
    follows the handshake of a record's last beat by `ARRIVED_LATENCY`.

    Beats are compared 2 cycles after their handshake. A record whose first beat has an unexpected sequence
    number is dropped, with all records requested so far behind it. It is read again alone, at max(last
    dropped beat, its own first beat + ``poll``) + `RETURN_LATENCY`, with beats at their comparison. Once that
    record matches, its last beat counts as a request, and prefetching continues with the next record. A
    record with the expected number and the stop bit ends the launch. It is no command: the next launch's
    first command has its number.

    Why
    ---
    The device counts sequence numbers, the host never sets one. So no command is accepted twice, and no
    response is sealed twice with one nonce.
    """

    #: `SPACING` to `RETURN_LATENCY`: the cycles above.
    SPACING: ClassVar = 3
    ADDRESS_LATENCY: ClassVar = BlockBursts.LATENCY + Skid.LATENCY
    ARRIVED_LATENCY: ClassVar = 3
    RETURN_LATENCY: ClassVar = 2 + SPACING

    def __init__(self, config: OramConfig) -> None:
        self._beats = config.command_bytes // BEAT_BYTES
        records = config.command_records
        self._bursts = BlockBursts(
            index_bits=SLOT_BITS, beats=self._beats, blocks=records, group=config.ring_group
        )
        self.stored = Fifo(BEAT_BITS, depth=self._beats * records, ram_style="block")
        self._records, self._group = records, config.ring_group
        self.outstanding = Signal(range(records + 1))  # requested, and not compared to its last beat
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of the ring's first slot, a multiple of a beat.
                #: Slots of the ring, a power of two, minus 1. A record lies in the slot of its sequence
                #: number.
                "mask": In(SLOT_BITS),
                #: Commands of a launch, or 0: until a record with the stop bit.
                "operations": In(OPERATIONS_BITS),
                #: Minimum cycles from the read of an unwritten record to the next.
                "poll": In(POLL_BITS),
                #: Pulse: a launch begins; ``base``, ``mask``, ``operations`` and ``poll`` are constant until
                #: its end.
                "start": In(1),
                "halt": In(1),  #: No further request.
                "o": Out(stream.Signature(BEAT_BITS)),  #: Beats of the commands, in order.
                #: Pulse: one more whole command is at ``o``. From two cycles later on its beats follow
                #: without gaps.
                "arrived": Out(1),
                "busy": Out(1),  #: The launch's last command has not arrived.
                #: Sequence number of the next command: the number of commands since reset.
                "sequence": Out(SEQUENCE_BITS),
                "axi": Out(axi.ReadSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: A beat arrived with a response other than OKAY since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Receive beats, check records, request more: a mismatch moves the requests back."""
        m = Module()
        m.submodules.bursts, m.submodules.stored = bursts, stored = self._bursts, self.stored
        m.submodules.addresses = addresses = Skid(bursts.o.payload.shape())
        connect(m, bursts.o, addresses.i)
        connect(m, stored.o, flipped(self.o))
        m.d.comb += [
            bursts.base.eq(self.base),
            self.axi.arvalid.eq(addresses.o.valid),
            self.axi.araddr.eq(addresses.o.payload.address),
            self.axi.arlen.eq(addresses.o.payload.beats - 1),
            addresses.o.ready.eq(self.axi.arready),
            self.axi.rready.eq(1),
        ]
        beats = self._receive(m)
        checked = self._check(m, beats)
        self._request(m, checked, beats.number)
        return m

    def _receive(self, m: Module) -> _Beats:
        """Shift beats through two registers; compare the first beat of each record in between."""
        final = self._beats - 1
        place = Signal(range(self._beats))
        valid, first, last = (Signal(2, name=name) for name in ("valid", "first", "last"))
        names = ("received", "compared")
        received, compared = (Signal(BEAT_BITS, name=name, reset_less=True) for name in names)
        number = Signal(SEQUENCE_BITS)  # expected of the next record
        equal = Signal()
        stops = Signal()
        m.d.sync += [
            valid.eq(valid << 1 | self.axi.rvalid),
            first.eq(first << 1 | (place == 0)),
            last.eq(last << 1 | (place == final)),
            received.eq(self.axi.rdata),
            compared.eq(received),
            equal.eq(received[:SEQUENCE_BITS] == number),
            stops.eq(received[STOP_BIT]),
        ]
        with m.If(self.axi.rvalid):
            m.d.sync += place.eq(Mux(place == final, 0, place + 1))
            with m.If(self.axi.rresp != axi.RESP_OKAY):
                m.d.sync += self.error.eq(1)
        with m.If(valid[0] & last[0]):
            m.d.sync += number.eq(number + 1)
        return _Beats(valid[1], first[1], last[1], compared, number, equal, stops)

    def _check(self, m: Module, beats: _Beats) -> _Checked:
        """Store matching records; drop a mismatch and the records behind it."""
        stored, valid = self.stored, beats.valid
        dropping = Signal()
        ending = Signal()
        whole = Signal()
        refused = Signal()
        good = Signal()
        drop = Signal()
        m.d.comb += [
            refused.eq(valid & beats.first & ~dropping & (~beats.equal | beats.stops)),
            whole.eq(valid & beats.last),
            good.eq(whole & ~dropping & ~refused),
            drop.eq(whole & ~good),
            stored.i.valid.eq(valid & ~dropping & ~refused),
            stored.i.payload.eq(beats.compared),
        ]
        m.d.sync += self.arrived.eq(good)
        wait = Signal(POLL_BITS)
        resume = Signal()
        m.d.sync += resume.eq(dropping & ~resume & (self.outstanding == 0) & (wait == 0))
        with m.If(refused):
            m.d.sync += [dropping.eq(1), ending.eq(beats.equal), wait.eq(self.poll)]
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        return _Checked(whole, good, drop, dropping, ending, resume)

    def _request(self, m: Module, checked: _Checked, number: Signal) -> None:
        """Request records of the launch while they have room."""
        bursts, final = self._bursts, self._beats - 1
        unasked = Signal(OPERATIONS_BITS)
        missing = Signal(OPERATIONS_BITS)
        endless = Signal()
        alone = Signal()
        slot = Signal(SLOT_BITS)
        held = Signal(range(self._records + 1))  # requested, or in front of ``o``
        left = Signal(range(self._beats), init=final)  # remaining beats of the record in front of ``o``
        given = Signal()
        freed = Signal()
        ask = Signal()
        changed = Signal()
        ahead = Signal(range(self._group))
        more = Signal(range(self._group))
        fits = Signal()
        settled = Signal(self.SPACING - 1)
        m.d.comb += ahead.eq(~slot & self.mask)
        with m.If(alone):
            m.d.sync += more.eq(0)
        with m.Elif(~endless & (unasked <= ahead)):
            m.d.sync += more.eq(unasked - 1)
        with m.Else():
            m.d.sync += more.eq(ahead)
        m.d.sync += [
            fits.eq(
                (held + more < self._records) & (endless | unasked.any()) & ~(alone & self.outstanding.any())
            ),
            settled.eq(Mux(changed, 0, settled << 1 | 1)),
        ]
        asked = Mux(ask, more + 1, 0)
        m.d.comb += [
            given.eq(self.o.valid & self.o.ready),
            freed.eq(given & (left == 0)),
            ask.eq(self.busy & fits & settled[-1] & ~checked.dropping & ~self.halt),
            changed.eq(self.start | ask | checked.resume | (checked.good & alone)),
            bursts.i.valid.eq(ask),
            bursts.i.payload.index.eq(slot & self.mask),
            bursts.i.payload.more.eq(more),
        ]
        m.d.sync += [
            held.eq(held + asked - freed - checked.drop),
            self.outstanding.eq(self.outstanding + asked - checked.whole),
        ]
        with m.If(given):
            m.d.sync += left.eq(Mux(left == 0, final, left - 1))
        with m.If(ask):
            m.d.sync += [slot.eq(slot + asked), unasked.eq(unasked - asked)]
        with m.If(checked.good):
            m.d.sync += [self.sequence.eq(self.sequence + 1), missing.eq(missing - 1), alone.eq(0)]
        with m.If(self.busy & ~endless & ~missing.any()):
            m.d.sync += self.busy.eq(0)
        with m.If(checked.resume):
            m.d.sync += [
                checked.dropping.eq(0),
                alone.eq(1),
                slot.eq(self.sequence),
                number.eq(self.sequence),
                unasked.eq(missing),
                self.busy.eq(~checked.ending),
            ]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq(1),
                alone.eq(0),
                endless.eq(self.operations == 0),
                unasked.eq(self.operations),
                missing.eq(self.operations),
            ]
