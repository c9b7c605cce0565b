"""AXI4 and AXI-Lite signatures (AMBA IHI 0022H), seen from the manager.

Members are flat and carry the protocol's own names in lower case (``awvalid``), so that a kernel's port list is
these names in upper case behind a prefix.  Only what an FPGA kernel on AXI3 HBM or AXI4 DDR uses is there:
INCR bursts of full-width beats; ``size``, ``burst``, ``lock``, ``cache``, ``prot`` and ``qos`` are constants that
the kernel shell adds.
"""

from __future__ import annotations

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError

#: Beats of the longest burst: HBM ports are AXI3.
MAX_BURST_BEATS = 16
#: No burst may cross a multiple of this many bytes (AXI4, A3.4.1).
BOUNDARY_BYTES = 4096
#: ``resp`` of a transfer that went well.
RESP_OKAY = 0


class Signature(wiring.Signature):
    """A full-width AXI manager port.

    Parameters
    ----------
    data_width
        Bits of a beat: a power of two from 32 to 1024.
    addr_width
        Bits of a byte address.
    id_width
        Bits of a transaction identifier, at least 1.

    Members
    -------
    aw, w, b, ar, r channels
        ``awvalid awready awaddr awlen awid``, ``wvalid wready wdata wstrb wlast``,
        ``bvalid bready bresp bid``, ``arvalid arready araddr arlen arid``,
        ``rvalid rready rdata rresp rlast rid``.
    """

    def __init__(self, *, data_width: int = 256, addr_width: int = 64, id_width: int = 1) -> None:
        if data_width not in (32, 64, 128, 256, 512, 1024):
            raise InputError("data_width", data_width, "a power of two from 32 to 1024")
        if not 12 < addr_width <= 64:
            raise InputError("addr_width", addr_width, "from 13 to 64")
        if not 1 <= id_width <= 16:
            raise InputError("id_width", id_width, "from 1 to 16")
        self.data_width = data_width
        self.addr_width = addr_width
        self.id_width = id_width
        super().__init__(
            {
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
        )

    @property
    def beat_bytes(self) -> int:
        """Bytes of one beat."""
        return self.data_width // 8

    def __repr__(self) -> str:
        return (
            f"axi.Signature(data_width={self.data_width}, addr_width={self.addr_width}, "
            f"id_width={self.id_width})"
        )


class LiteSignature(wiring.Signature):
    """A 32-bit AXI-Lite manager port.

    Parameters
    ----------
    addr_width
        Bits of a byte address.
    """

    def __init__(self, *, addr_width: int = 12) -> None:
        if not 4 <= addr_width <= 64:
            raise InputError("addr_width", addr_width, "from 4 to 64")
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

    def __repr__(self) -> str:
        return f"axi.LiteSignature(addr_width={self.addr_width})"
