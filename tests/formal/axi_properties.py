"""The rules of AXI4 as Amaranth components that watch the read half or the write half of a port.

They state AXI4 (IHI 0022H) for what this project's managers use: full-width INCR bursts of one ID, answered
in order; and on top of it what these managers promise: at most ``burst_beats`` beats, aligned to the beat,
and no write data before their address.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out
from amaranth.utils import exact_log2

from hw.lib import axi
from tests.formal.channel import (
    RULES,
    Role,
    Rule,
    channel,
    difference,
    inputs,
    patience,
    quiet_after_reset,
    transfers,
)
from tests.support.proofs.formal import reach


def burst_rules(
    m: Module,
    rule: Rule,
    name: str,
    *,
    burst_beats: int,
    beat_bytes: int,
    valid: Any,
    address: Any,
    length: Any,
) -> None:
    """State what an address channel may ask for."""
    lanes = exact_log2(beat_bytes)
    page = axi.BOUNDARY_BYTES // beat_bytes
    with m.If(valid):
        rule(m, length < burst_beats, f"no {name} burst is longer than {burst_beats} beats")
        rule(m, address[lanes:12] + length < page, f"no {name} burst crosses 4 KiB (A3.4.1)")
        rule(m, address[:lanes] == 0, f"{name} addresses are multiples of the beat")


class Lengths:
    """The bursts that are addressed and not completed: their lengths, oldest first.

    ``count`` of them are open; ``place`` is the next beat of the oldest one.
    """

    def __init__(
        self, m: Module, name: str, *, limit: int, push: Value, length: Value, beat: Value, end: Value
    ):
        self.count = difference(m, f"{name}_bursts", limit=limit, up=push, down=end)
        self._lengths = Array(Signal(8, name=f"{name}_length_{n}") for n in range(limit + 2))
        self.place = Signal(8, name=f"{name}_place")
        m.d.sync += self.place.eq(Mux(end, 0, self.place + beat))
        with m.If(end):
            for older, newer in zip(self._lengths, self._lengths[1:], strict=False):
                m.d.sync += older.eq(newer)
        with m.If(push):
            m.d.sync += self._lengths[self.count - end].eq(length)

    @property
    def oldest(self) -> Value:
        """Length of the oldest burst in beats, less 1."""
        return self._lengths[0]


class AxiReadProperties(wiring.Component):
    """Rules of the ar and r channels.

    Parameters
    ----------
    signature
        Of the port.
    manager, subordinate
        ``"check"`` for the side under test, ``"suppose"`` for its environment.
    burst_beats
        Beats of the longest burst the manager may ask for.
    limit
        Bursts that the subordinate takes before it has answered the first: its capacity.
    wanted
        Whether the manager promises to take every beat at once: ``rready`` is up while beats are to come.

    Members
    -------
    every member of the port : In
    bursts : Out
        Bursts open.

    Rules
    -----
    Manager: ar low after reset and stable; `burst_rules`; one ID, 0; ``wanted``.
    Subordinate: r low after reset and, unless ``wanted``, stable; a beat only after its address, ``rlast`` on
    the last beat of a burst and on no other, the address's ID; no burst taken beyond the capacity.
    """

    def __init__(
        self,
        signature: axi.ReadSignature,
        *,
        manager: Role,
        subordinate: Role,
        burst_beats: int = axi.MAX_BURST_BEATS,
        limit: int = 2,
        wanted: bool = False,
    ) -> None:
        self._manager = RULES[manager]
        self._subordinate = RULES[subordinate]
        self._beat_bytes = signature.beat_bytes
        self._burst_beats = burst_beats
        self._limit = limit
        self._wanted = wanted
        super().__init__(inputs(signature) | {"bursts": Out(range(limit + 2))})

    def elaborate(self, platform: Any) -> Elaboratable:
        """State the rules."""
        m = Module()
        manager, subordinate = self._manager, self._subordinate
        channel(m, manager, "ar", self.arvalid, self.arready, self.araddr, self.arlen, self.arid)
        if self._wanted:  # no beat ever waits
            quiet_after_reset(m, subordinate, "r", self.rvalid)
        else:
            answer = (self.rdata, self.rresp, self.rlast, self.rid)
            channel(m, subordinate, "r", self.rvalid, self.rready, *answer)
        burst_rules(
            m,
            manager,
            "read",
            burst_beats=self._burst_beats,
            beat_bytes=self._beat_bytes,
            valid=self.arvalid,
            address=self.araddr,
            length=self.arlen,
        )
        with m.If(self.arvalid):
            manager(m, self.arid == 0, "reads have the one ID")

        asked = transfers(m, "ar", self.arvalid, self.arready)
        beat = transfers(m, "r", self.rvalid, self.rready)
        lengths = Lengths(
            m, "read", limit=self._limit, push=asked, length=self.arlen, beat=beat, end=beat & self.rlast
        )
        m.d.comb += self.bursts.eq(lengths.count)
        subordinate(m, lengths.count <= self._limit, "no read beyond the capacity is taken")
        with m.If(self.rvalid):
            subordinate(m, lengths.count != 0, "a beat follows its address")
            subordinate(m, self.rlast == (lengths.place == lengths.oldest), "rlast marks the burst's end")
            subordinate(m, self.rid == 0, "beats have the ID of their address")
        if self._wanted:
            with m.If(lengths.count != 0):
                manager(m, self.rready, "every beat asked for is taken at once")

        reach(m, beat & self.rlast & (lengths.place != 0), "a burst of several beats is read")
        reach(m, lengths.count == self._limit, "as many reads are open as may be")
        return m


class AxiWriteProperties(wiring.Component):
    """Rules of the aw, w and b channels.

    Parameters
    ----------
    signature, manager, subordinate, burst_beats
        As of `AxiReadProperties`.
    limit
        Bursts that the subordinate takes before it has answered the first: its capacity.
    prompt_cycles
        Longest time, in cycles, without a beat on the bus while the address of one is or was there.  AXI
        sets no limit; a manager that claims to have its data at hand before it asks does.

    Members
    -------
    every member of the port : In
    shown : Out
        Bursts whose address is or was on the bus and whose last beat is not transferred.
    addressed, filled : Out
        Bursts whose address, or whose last beat, is transferred and which are not answered.

    Rules
    -----
    Manager: aw and w low after reset and stable; `burst_rules`; one ID, 0; no beat on the bus before its
    address; ``wlast`` on the last beat of a burst and on no other, so never more beats than announced.
    Subordinate: b low after reset and stable; a response only after its address and its last beat (A3.3.1),
    the address's ID; no burst taken beyond the capacity.
    """

    def __init__(
        self,
        signature: axi.WriteSignature,
        *,
        manager: Role,
        subordinate: Role,
        burst_beats: int = axi.MAX_BURST_BEATS,
        limit: int = 2,
        prompt_cycles: int | None = None,
    ) -> None:
        self._manager = RULES[manager]
        self._subordinate = RULES[subordinate]
        self._beat_bytes = signature.beat_bytes
        self._burst_beats = burst_beats
        self._limit = limit
        self._prompt_cycles = prompt_cycles
        count = Out(range(limit + 2))
        super().__init__(inputs(signature) | {"shown": count, "addressed": count, "filled": count})

    def elaborate(self, platform: Any) -> Elaboratable:
        """State the rules."""
        m = Module()
        manager, subordinate, limit = self._manager, self._subordinate, self._limit
        channel(m, manager, "aw", self.awvalid, self.awready, self.awaddr, self.awlen, self.awid)
        channel(m, manager, "w", self.wvalid, self.wready, self.wdata, self.wstrb, self.wlast)
        channel(m, subordinate, "b", self.bvalid, self.bready, self.bresp, self.bid)
        burst_rules(
            m,
            manager,
            "write",
            burst_beats=self._burst_beats,
            beat_bytes=self._beat_bytes,
            valid=self.awvalid,
            address=self.awaddr,
            length=self.awlen,
        )
        with m.If(self.awvalid):
            manager(m, self.awid == 0, "writes have the one ID")

        taken = transfers(m, "aw", self.awvalid, self.awready)
        beat = transfers(m, "w", self.wvalid, self.wready)
        answer = transfers(m, "b", self.bvalid, self.bready)
        end = beat & self.wlast
        # An address counts from the cycle it is first on the bus: its data may pass before it is taken.
        waited = Signal()
        m.d.sync += waited.eq(self.awvalid & ~self.awready)
        show = self.awvalid & ~waited
        lengths = Lengths(m, "write", limit=limit, push=show, length=self.awlen, beat=beat, end=end)
        nothing = lengths.count == 0
        current = Mux(nothing, self.awlen, lengths.oldest)
        with m.If(self.wvalid):
            manager(m, ~nothing | show, "data are not on the bus before their address")
            manager(m, self.wlast == (lengths.place == current), "wlast marks the burst's end")

        if self._prompt_cycles is not None:
            late = (~nothing | show) & ~self.wvalid
            patience(m, manager, self._prompt_cycles, late, "data follow their address at once")

        addressed = difference(m, "aw_open", limit=limit, up=taken, down=answer)
        filled = difference(m, "w_open", limit=limit, up=end, down=answer)
        m.d.comb += [self.shown.eq(lengths.count), self.addressed.eq(addressed), self.filled.eq(filled)]
        subordinate(m, addressed <= limit, "no write address beyond the capacity is taken")
        subordinate(m, filled <= limit, "no write data beyond the capacity are taken")
        with m.If(self.bvalid):
            subordinate(m, addressed != 0, "a response follows its address")
            subordinate(m, filled != 0, "a response follows its last beat")
            subordinate(m, self.bid == 0, "responses have the ID of their address")

        reach(m, answer, "a write is answered")
        reach(m, end & (lengths.place != 0), "a burst of several beats is written")
        reach(m, addressed == limit, "as many writes are open as may be")
        return m
