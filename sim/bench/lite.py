"""An AXI-Lite manager for the few register accesses around a kernel call."""

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
        offered = {"AWADDR": offset, "WDATA": value, "WSTRB": 0b1111}
        taken, _ = await self._exchange("write to", offset, offered, ("AW", "W"), "B")
        return taken

    async def read(self, offset: int) -> int:
        """Read the 32 bits at byte ``offset``."""
        _, value = await self._exchange("read of", offset, {"ARADDR": offset}, ("AR",), "R")
        return value

    async def _exchange(
        self, title: str, offset: int, offered: dict[str, int], channels: tuple[str, ...], answer: str
    ) -> tuple[int, int]:
        """Offer values on channels until they are taken and answered; return the cycle, and the data read."""
        await FallingEdge(self._top.clk)
        waiting = list(channels)
        ready = f"{answer}READY"
        for name, value in (
            offered | dict.fromkeys([*(f"{each}VALID" for each in waiting), ready], 1)
        ).items():
            self._port(name).value = value
        taken = data = 0
        for _ in range(_PATIENCE_CYCLES):
            await ReadOnly()
            accepted = [each for each in waiting if self._port(f"{each}READY").value == 1]
            answered = self._port(f"{answer}VALID").value == 1
            response = int(self._port(f"{answer}RESP").value) if answered else 0
            if answered and answer == "R":
                data = int(self._port("RDATA").value)
            if accepted:
                taken = int(self._top.cycle.value)
            await FallingEdge(self._top.clk)
            for each in accepted:
                self._port(f"{each}VALID").value = 0
                waiting.remove(each)
            if answered:
                self._port(ready).value = 0
                if response or waiting:
                    raise LiteError(f"{title} {offset:#x} was answered with {response}, or too early")
                return taken, data
        raise LiteError(f"{title} {offset:#x} was not answered in {_PATIENCE_CYCLES} cycles")
