"""Traffic generators: AXI managers that load a memory with a pattern and measure latency and bandwidth."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib import axi

#: Bursts of one direction in flight at once.
MAX_OUTSTANDING = 64
#: Seed of the random addresses: any number but 0.
_SEED = 0x9E3779B97F4A7C15

#: The program of a generator of one direction; constant while it runs.
#:
#: ``base``: address of the window. ``mask``: offset bits that may be set: the window's bytes less 1, less the
#: alignment's bits for random addresses. ``stride``: bytes from burst to burst, for linear addresses.
#: ``random``: random addresses. ``beats``: of a burst, 1 to 256. ``count``: bursts, 0 for none.
#: ``outstanding``: bursts in flight, 1 to `MAX_OUTSTANDING`. ``id_mask``: identifiers rotate through the
#: values under this mask. ``interval``: least cycles from one address to the next. For writes only, ``pace``:
#: least cycles from one data beat to the next, and ``follow``: data beat k waits for beat k of the reads.
PROGRAM = data.StructLayout(
    {
        "base": 64,
        "mask": 48,
        "stride": 48,
        "random": 1,
        "beats": 9,
        "count": 32,
        "outstanding": 8,
        "id_mask": 8,
        "interval": 16,
        "pace": 8,
        "follow": 1,
    }
)

#: The measurement of a generator of one direction.
#:
#: ``cycles``: from start to the last answer. ``beats``: of data. ``first``: from start to the first data
#: (reads) or response (writes). ``latency_*``: from address to first data (reads), from last data to response
#: (writes), from handshake to handshake.  Answers are matched to requests in order.
RESULT = data.StructLayout(
    {
        "cycles": 48,
        "beats": 48,
        "first": 48,
        "latency_sum": 48,
        "latency_min": 32,
        "latency_max": 32,
        "latency_last": 32,
    }
)


class AddressPattern(wiring.Component):
    """The addresses of a run, one after another.

    Behaviour
    ---------
    Linear: ``base + (k * stride & mask)``. Random: ``base + (r & mask)`` with ``r`` from a 64-bit xorshift,
    which needs three shifts and no multiplier; every run has the same sequence.

    Example
    -------
    >>> pattern = AddressPattern(addr_width=33)
    >>> pattern.o.shape()
    unsigned(33)
    """

    def __init__(self, *, addr_width: int = 64) -> None:
        super().__init__(
            {
                "program": In(PROGRAM),
                "restart": In(1),  #: Restarts at the first address.
                "step": In(1),  #: Advances to the next address.
                "o": Out(addr_width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        linear = Signal(48)
        state = Signal(64, init=_SEED)
        a = Signal(64)
        b = Signal(64)
        c = Signal(64)
        m.d.comb += [
            a.eq(state ^ (state << 13)[:64]),
            b.eq(a ^ (a >> 7)),
            c.eq(b ^ (b << 17)[:64]),
            self.o.eq(self.program.base + (Mux(self.program.random, state[16:], linear) & self.program.mask)),
        ]
        with m.If(self.restart):
            m.d.sync += [linear.eq(0), state.eq(_SEED)]
        with m.Elif(self.step):
            m.d.sync += [linear.eq((linear + self.program.stride) & self.program.mask), state.eq(c)]
        return m


class _Stopwatch(wiring.Component):
    """Latency of answers, in the order of their requests."""

    def __init__(self) -> None:
        super().__init__(
            {
                "now": In(48),  #: Cycles since the start.
                #: ``restart``, ``request``, ``answer``: a pulse for each event.
                "restart": In(1),
                "request": In(1),
                "answer": In(1),
                "result": Out(RESULT),  #: ``first`` and ``latency_*``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.times = times = SyncFIFOBuffered(width=48, depth=2 * MAX_OUTSTANDING)
        result = self.result
        latency = Signal(32)
        answered = Signal()
        m.d.comb += [
            times.w_data.eq(self.now),
            times.w_en.eq(self.request),
            times.r_en.eq(self.answer),
            latency.eq(self.now - times.r_data),
        ]
        with m.If(self.answer):
            m.d.sync += [
                answered.eq(1),
                result.latency_last.eq(latency),
                result.latency_sum.eq(result.latency_sum + latency),
            ]
            with m.If(~answered):
                m.d.sync += result.first.eq(self.now)
            with m.If(~answered | (latency < result.latency_min)):
                m.d.sync += result.latency_min.eq(latency)
            with m.If(latency > result.latency_max):
                m.d.sync += result.latency_max.eq(latency)
        with m.If(self.restart):
            m.d.sync += [answered.eq(0), result.latency_sum.eq(0), result.latency_max.eq(0)]
        return m


class _Direction(wiring.Component):
    """Common part of reads and writes: addresses, pace, limit of outstanding bursts, stopwatch."""

    def __init__(self, signature: Any) -> None:
        self._addr_width = signature.addr_width
        self._id_width = signature.id_width
        super().__init__(
            {
                "program": In(PROGRAM),
                "start": In(1),  #: A pulse; not while busy.
                "busy": Out(1),
                "result": Out(RESULT),  #: Valid when not busy.
                "axi": Out(signature),
                "moved": Out(48),  #: Beats read or written so far.
                #: Of writes: beats received by a reader; data with ``program.follow`` do not overtake them.
                "followed": In(48),
            }
        )

    def _common(self, m: Module, *, address: Any, beat: Any, asked: Any, answered: Any, done: Any) -> Signal:
        """Add the common part; return the signal that issues a burst.

        ``address`` is the address handshake, ``beat`` a data beat's, ``asked`` and ``answered`` start and
        stop the stopwatch, ``done`` ends a burst.
        """
        program = self.program
        m.submodules.pattern = pattern = AddressPattern(addr_width=self._addr_width)
        m.submodules.watch = watch = _Stopwatch()
        running = Signal()
        issue = Signal()
        now = Signal(48)
        issued = Signal(32)
        finished = Signal(32)
        under_way = Signal(range(MAX_OUTSTANDING + 1))
        pause = Signal(16)
        identifier = Signal(8)
        prefix = "ar" if isinstance(self, ReadTraffic) else "aw"
        valid = getattr(self.axi, f"{prefix}valid")
        m.d.comb += [
            pattern.program.eq(program),
            pattern.restart.eq(self.start),
            pattern.step.eq(issue),
            watch.now.eq(now),
            watch.restart.eq(self.start),
            watch.request.eq(asked),
            watch.answer.eq(answered),
            self.busy.eq(running),
            issue.eq(
                running
                & (issued != program.count)
                & (under_way < program.outstanding)
                & (pause == 0)
                & (~valid | address)
            ),
            self.result.eq(watch.result),
            self.result.cycles.eq(now),
            self.result.beats.eq(self.moved),
        ]
        with m.If(address):
            m.d.sync += valid.eq(0)
        with m.If(issue):
            m.d.sync += [
                valid.eq(1),
                getattr(self.axi, f"{prefix}addr").eq(pattern.o),
                getattr(self.axi, f"{prefix}len").eq(program.beats - 1),
                getattr(self.axi, f"{prefix}id").eq(identifier),
                identifier.eq((identifier + 1) & program.id_mask),
                issued.eq(issued + 1),
            ]
        with m.If(issue):
            m.d.sync += pause.eq(Mux(program.interval == 0, 0, program.interval - 1))
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        m.d.sync += under_way.eq(under_way + issue - done)
        with m.If(beat):
            m.d.sync += self.moved.eq(self.moved + 1)
        with m.If(running):
            m.d.sync += now.eq(now + 1)
        with m.If(done):
            m.d.sync += finished.eq(finished + 1)
            with m.If(finished + 1 == program.count):
                m.d.sync += running.eq(0)
        with m.If(self.start):
            m.d.sync += [
                running.eq(program.count != 0),
                *(signal.eq(0) for signal in (now, issued, finished, self.moved, identifier, pause)),
            ]
        return issue


class ReadTraffic(_Direction):
    """Reads by a program, and measures them.

    Behaviour
    ---------
    Data are always taken; an address is issued every cycle that the program allows.

    Example
    -------
    >>> reader = ReadTraffic(data_width=512)
    >>> reader.axi.signature
    axi.ReadSignature(data_width=512, addr_width=64, id_width=1)
    """

    def __init__(self, *, data_width: int = 256, addr_width: int = 64, id_width: int = 1) -> None:
        super().__init__(axi.ReadSignature(data_width=data_width, addr_width=addr_width, id_width=id_width))

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        port = self.axi
        first = Signal(init=1)
        address = Signal()
        beat = Signal()
        m.d.comb += [
            port.rready.eq(1),
            address.eq(port.arvalid & port.arready),
            beat.eq(port.rvalid & port.rready),
        ]
        with m.If(beat):
            m.d.sync += first.eq(port.rlast)
        self._common(
            m, address=address, beat=beat, asked=address, answered=beat & first, done=beat & port.rlast
        )
        return m


class WriteTraffic(_Direction):
    """Writes by a program, and measures them.

    Behaviour
    ---------
    Data follow their address by a cycle or more, without a bubble between bursts.  Every 32-bit word of a
    beat is the number of the beat.

    Example
    -------
    >>> writer = WriteTraffic(data_width=128)
    >>> writer.axi.signature
    axi.WriteSignature(data_width=128, addr_width=64, id_width=1)
    """

    def __init__(self, *, data_width: int = 256, addr_width: int = 64, id_width: int = 1) -> None:
        self._data_width = data_width
        super().__init__(axi.WriteSignature(data_width=data_width, addr_width=addr_width, id_width=id_width))

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        port = self.axi
        to_send = Signal(range(MAX_OUTSTANDING + 1))
        index = Signal(8)
        pause = Signal(8)
        address = Signal()
        beat = Signal()
        last = Signal()
        response = Signal()
        m.d.comb += [
            port.wvalid.eq(
                (to_send != 0) & (pause == 0) & (~self.program.follow | (self.moved < self.followed))
            ),
            port.wdata.eq(Cat([self.moved[:32]] * (self._data_width // 32))),
            port.wstrb.eq(~0),
            port.wlast.eq(index == self.program.beats - 1),
            port.bready.eq(1),
            address.eq(port.awvalid & port.awready),
            beat.eq(port.wvalid & port.wready),
            last.eq(beat & port.wlast),
            response.eq(port.bvalid & port.bready),
        ]
        issue = self._common(m, address=address, beat=beat, asked=last, answered=response, done=response)
        m.d.sync += to_send.eq(to_send + issue - last)
        with m.If(beat):
            m.d.sync += [
                index.eq(Mux(port.wlast, 0, index + 1)),
                pause.eq(Mux(self.program.pace == 0, 0, self.program.pace - 1)),
            ]
        with m.Elif(pause != 0):
            m.d.sync += pause.eq(pause - 1)
        return m


class TrafficGenerator(wiring.Component):
    """A port that reads and writes at once, each by its own program.

    >>> generator = TrafficGenerator(id_width=4)
    >>> generator.read_program.shape() is PROGRAM
    True
    """

    def __init__(self, *, data_width: int = 256, addr_width: int = 64, id_width: int = 1) -> None:
        if id_width > 8:
            raise InputError("id_width", id_width, "at most 8")
        self._widths = {"data_width": data_width, "addr_width": addr_width, "id_width": id_width}
        super().__init__(
            {
                "read_program": In(PROGRAM),
                "write_program": In(PROGRAM),
                "start": In(1),  #: Starts both; a program with a ``count`` of 0 ends at once.
                "busy": Out(1),
                "read_result": Out(RESULT),
                "write_result": Out(RESULT),
                "axi": Out(axi.Signature(**self._widths)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.read = read = ReadTraffic(**self._widths)
        m.submodules.write = write = WriteTraffic(**self._widths)
        m.d.comb += [
            read.program.eq(self.read_program),
            write.program.eq(self.write_program),
            read.start.eq(self.start),
            write.start.eq(self.start),
            write.followed.eq(read.moved),
            self.busy.eq(read.busy | write.busy),
            self.read_result.eq(read.result),
            self.write_result.eq(write.result),
        ]
        axi.connect(m, read=read.axi, write=write.axi, port=self.axi)
        return m
