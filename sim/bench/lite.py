"""An AXI-Lite manager for the few register accesses around a kernel call."""

from __future__ import annotations

from typing import Any

from cocotb.triggers import FallingEdge, ReadOnly

#: A register file answers within a few cycles; one that does not is broken.
_PATIENCE_CYCLES = 64


class LiteError(Exception):
    """The register file broke the protocol; the message says how."""


class LiteManager:
    """Register access through the ports ``s_axi_control_*`` of ``top``.

    Everything is driven on the falling edge and sampled just before the rising one, when every signal has
    settled.  So the order of events within a rising edge does not matter.
    """

    def __init__(self, top: Any) -> None:
        self._top = top
        for name in ("AWVALID", "WVALID", "BREADY", "ARVALID", "RREADY"):
            self._port(name).value = 0

    def _port(self, name: str) -> Any:
        return getattr(self._top, f"s_axi_control_{name}")

    async def write(self, offset: int, value: int) -> int:
        """Write 32 bits at byte ``offset`` and return the cycle in which the register file took them."""
        await FallingEdge(self._top.clk)
        self._port("AWADDR").value = offset
        self._port("WDATA").value = value
        self._port("WSTRB").value = 0b1111
        self._port("AWVALID").value = 1
        self._port("WVALID").value = 1
        self._port("BREADY").value = 1
        waiting = {"AWVALID": "AWREADY", "WVALID": "WREADY"}
        taken = 0
        for _ in range(_PATIENCE_CYCLES):
            await ReadOnly()
            accepted = [valid for valid, ready in waiting.items() if self._port(ready).value == 1]
            answered = self._port("BVALID").value == 1
            response = int(self._port("BRESP").value) if answered else 0
            if accepted:
                taken = int(self._top.cycle.value)
            await FallingEdge(self._top.clk)
            for valid in accepted:
                self._port(valid).value = 0
                del waiting[valid]
            if answered:
                self._port("BREADY").value = 0
                if response or waiting:
                    raise LiteError(f"write to {offset:#x} was answered with {response}, or too early")
                return taken
        raise LiteError(f"write to {offset:#x} was not answered in {_PATIENCE_CYCLES} cycles")

    async def read(self, offset: int) -> int:
        """Read the 32 bits at byte ``offset``."""
        await FallingEdge(self._top.clk)
        self._port("ARADDR").value = offset
        self._port("ARVALID").value = 1
        self._port("RREADY").value = 1
        for _ in range(_PATIENCE_CYCLES):
            await ReadOnly()
            accepted = self._port("ARREADY").value == 1
            answered = self._port("RVALID").value == 1
            value = int(self._port("RDATA").value) if answered else 0
            response = int(self._port("RRESP").value) if answered else 0
            await FallingEdge(self._top.clk)
            if accepted:
                self._port("ARVALID").value = 0
            if answered:
                self._port("RREADY").value = 0
                if response:
                    raise LiteError(f"read of {offset:#x} was answered with {response}")
                return value
        raise LiteError(f"read of {offset:#x} was not answered in {_PATIENCE_CYCLES} cycles")
