"""AXI4 and AXI-Lite signatures (AMBA IHI 0022H), seen from the manager.

Members are flat and have the protocol's names in lower case (``awvalid``).  A kernel's ports are these names
in upper case behind a prefix.  Bursts are INCR, of full-width beats, as AXI3 HBM and AXI4 DDR take them.  The
kernel shell adds the constants ``size``, ``burst``, ``lock``, ``cache``, ``prot`` and ``qos``.
"""

from typing import Any, ClassVar

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError, check_power_of_two, check_range

#: Beats of the longest burst: HBM ports are AXI3.
MAX_BURST_BEATS = 16
#: No burst may cross a multiple of this many bytes (AXI4, A3.4.1).
BOUNDARY_BYTES = 4096
#: ``resp`` of a transfer without an error.
RESP_OKAY = 0


def _write_members(data_width: int, addr_width: int, id_width: int) -> dict[str, wiring.Member]:
    """Members of the aw, w and b channels."""
    return {
        "awvalid": Out(1),
        "awready": In(1),
        "awaddr": Out(addr_width),
        "awlen": Out(8),
        "awid": Out(id_width),
        "wvalid": Out(1),
        "wready": In(1),
        "wdata": Out(data_width),
        "wstrb": Out(data_width // 8),
        "wlast": Out(1),
        "bvalid": In(1),
        "bready": Out(1),
        "bresp": In(2),
        "bid": In(id_width),
    }


def _read_members(data_width: int, addr_width: int, id_width: int) -> dict[str, wiring.Member]:
    """Members of the ar and r channels."""
    return {
        "arvalid": Out(1),
        "arready": In(1),
        "araddr": Out(addr_width),
        "arlen": Out(8),
        "arid": Out(id_width),
        "rvalid": In(1),
        "rready": Out(1),
        "rdata": In(data_width),
        "rresp": In(2),
        "rlast": In(1),
        "rid": In(id_width),
    }


class _FullSignature(wiring.Signature):
    """The widths, shared by a port and its two halves."""

    #: Function of the three widths that returns the members.
    _channels: ClassVar[Any]

    def __init__(self, *, data_width: int = 256, addr_width: int = 64, id_width: int = 1) -> None:
        # Narrower and wider ones are outside the protocol, or on no supported board.
        check_power_of_two("data_width", data_width, 32, 1024)
        check_range("addr_width", addr_width, 13, 64)
        check_range("id_width", id_width, 1, 16)
        self.data_width = data_width
        self.addr_width = addr_width
        self.id_width = id_width
        super().__init__(self._channels(data_width, addr_width, id_width))

    @property
    def beat_bytes(self) -> int:
        """Bytes of one beat."""
        return self.data_width // 8

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.members == other.members

    def __repr__(self) -> str:
        return (
            f"axi.{type(self).__name__}(data_width={self.data_width}, addr_width={self.addr_width}, "
            f"id_width={self.id_width})"
        )


class ReadSignature(_FullSignature):
    """The ar and r channels of a full-width AXI manager port.

    >>> list(ReadSignature(data_width=512).members)[:4]
    ['arvalid', 'arready', 'araddr', 'arlen']
    """

    _channels = staticmethod(_read_members)


class WriteSignature(_FullSignature):
    """The aw, w and b channels of a full-width AXI manager port.

    >>> WriteSignature(data_width=128).members["wstrb"]
    Out(16)
    """

    _channels = staticmethod(_write_members)


class Signature(_FullSignature):
    """A full-width AXI manager port.

    ``data_width``: bits of a beat: a power of two from 32 to 1024. ``id_width``: bits of a transaction
    identifier, at least 1.

    >>> port = Signature(data_width=512)
    >>> port.beat_bytes, port.read
    (64, axi.ReadSignature(data_width=512, addr_width=64, id_width=1))
    """

    _channels = staticmethod(lambda *widths: _write_members(*widths) | _read_members(*widths))

    @property
    def read(self) -> ReadSignature:
        """The half that a read DMA drives."""
        return ReadSignature(data_width=self.data_width, addr_width=self.addr_width, id_width=self.id_width)

    @property
    def write(self) -> WriteSignature:
        """The half that a write DMA drives."""
        return WriteSignature(data_width=self.data_width, addr_width=self.addr_width, id_width=self.id_width)


class LiteSignature(wiring.Signature):
    """A 32-bit AXI-Lite manager port.

    >>> LiteSignature(addr_width=12).members["awaddr"]
    Out(12)
    """

    def __init__(self, *, addr_width: int = 12) -> None:
        check_range("addr_width", addr_width, 4, 64)
        self.addr_width = addr_width
        super().__init__(
            {
                "awvalid": Out(1),
                "awready": In(1),
                "awaddr": Out(addr_width),
                "wvalid": Out(1),
                "wready": In(1),
                "wdata": Out(32),
                "wstrb": Out(4),
                "bvalid": In(1),
                "bready": Out(1),
                "bresp": In(2),
                "arvalid": Out(1),
                "arready": In(1),
                "araddr": Out(addr_width),
                "rvalid": In(1),
                "rready": Out(1),
                "rdata": In(32),
                "rresp": In(2),
            }
        )

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.members == other.members

    def __repr__(self) -> str:
        return f"axi.LiteSignature(addr_width={self.addr_width})"


def connect(m: Module, *, read: Any = None, write: Any = None, port: Any) -> None:
    """Join a read half and a write half into one port of the component being elaborated.

    ``read``: ``axi`` of a read DMA in ``m`` (`ReadSignature`), or None for a port that never reads.
    ``write``: ``axi`` of a write DMA in ``m`` (`WriteSignature`), or None for a port that never writes.
    ``port``: the component's own ``Out(axi.Signature)`` member.  Raises `InputError` if a half's widths
    differ from the port's.
    """
    for name, half, expected in (
        ("read", read, port.signature.read),
        ("write", write, port.signature.write),
    ):
        if half is not None and half.signature != expected:
            raise InputError(name, half.signature, f"an interface of {expected!r}")
        for member_name, member in expected.members.items():
            outer = getattr(port, member_name)
            if half is None:
                if member.flow == Out:
                    # No address is issued, so no answer arrives.
                    m.d.comb += outer.eq(1 if member_name in ("rready", "bready") else 0)
            elif member.flow == Out:
                m.d.comb += outer.eq(getattr(half, member_name))
            else:
                m.d.comb += getattr(half, member_name).eq(outer)
