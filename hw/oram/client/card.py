"""Both rings of a map on a card, through XRT."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from hw.errors import ToolError, check_power_of_two
from hw.launch import Bytes
from hw.oram.client.errors import LostMapError
from hw.oram.client.shared import clear_rings, write_record
from hw.oram.config import OramConfig
from hw.oram.driver.buffers import COMMANDS, PAGES, RESPONSES, launch_buffers
from hw.oram.driver.keys import Secrets
from hw.oram.driver.sealing import stop_record
from hw.oram.kernel.arguments import argument_table

#: Cycles from the read of an unwritten command to the next.
_POLL_CYCLES = 250
_STOP_MS = 60_000
_STATE = "ERT_CMD_STATE_"
#: States of a launch that may still end; XRT says any other of one that it gave up.
_UNDER_WAY = ("NEW", "QUEUED", "SUBMITTED", "RUNNING", "TIMEOUT")


class CardRings:
    """A `Transport` in the process that opens the card. The map ends with this process.

    ``kernel``: its name in the image. ``slots``: of either ring, a power of two.

    Behaviour
    ---------
    The host's process writes keys and epoch: without a trusted loader it knows them. A map needs an engine
    after reset. Only the first map of a process has one; before another, reset the card (``xbutil reset``)
    and begin a new process.
    """

    def __init__(
        self,
        config: OramConfig,
        image: Path,
        *,
        kernel: str = "loomwork_oram",
        device: int = 0,
        slots: int = 1024,
    ) -> None:
        check_power_of_two("slots", slots, 2, 1 << 20)
        self.slots = slots
        self._config, self._image, self._kernel, self._device = config, image, kernel, device
        self._next = 0
        self._call: Any = None
        self._buffers: dict[str, Any] = {}
        #: [slots, R], in the memory that the card reads and writes.
        self.commands: Bytes = np.zeros((slots, config.command_bytes), np.uint8)
        self.responses: Bytes = self.commands

    def initialize(self, secrets: Secrets) -> None:
        """See `Transport`.

        Raises `ToolError` without XRT, `LostMapError` if this process had a map.
        """
        if self._call is not None:
            raise LostMapError("the card had a map: reset it, and begin a new process")
        try:
            xrt = importlib.import_module("pyxrt")
        except ImportError as error:
            raise ToolError(f"{error}: XRT's setup.sh puts it on PYTHONPATH") from error
        try:
            card = xrt.device(self._device)
            image = card.load_xclbin(xrt.xclbin(str(self._image)))
            unit = xrt.kernel(card, image, self._kernel, xrt.kernel.shared)
        except RuntimeError as error:
            raise ToolError(f"XRT cannot load {self._image} on card {self._device}: {error}") from error
        scalars = {
            "initialize": 1,
            "operation_count": 0,
            "ring_slots": self.slots,
            "poll_cycles": _POLL_CYCLES,
            "finish": 1,
            **secrets.scalars,
        }
        sizes = {each.argument: each.size_bytes for each in launch_buffers(self._config, self.commands)}
        given = []
        for index, argument in enumerate(argument_table(self._config).call):
            if argument.name in scalars:
                given.append(_signed(scalars[argument.name]))
                continue
            own = argument.name in (COMMANDS, RESPONSES, PAGES)
            flags = xrt.bo.host_only if own else xrt.bo.normal
            buffer = xrt.bo(card, sizes[argument.name], flags, unit.group_id(index))
            self._buffers[argument.name] = buffer
            given.append(buffer)
        self.commands, self.responses = (
            np.frombuffer(self._buffers[name].map(), np.uint8).reshape(self.slots, -1)
            for name in (COMMANDS, RESPONSES)
        )
        clear_rings(self.commands, self.responses)
        self._call = unit(*given)

    def write(self, number: int, record: bytes) -> None:
        """See `Transport`."""
        write_record(self.commands[number % self.slots], record)
        self._next = max(self._next, number + 1)

    def read(self, number: int) -> bytes:
        """See `Transport`."""
        return self.responses[number % self.slots].tobytes()

    def ended(self) -> str:
        """See `Transport`."""
        if self._call is None:
            return "no launch in this process"
        state = str(self._call.state()).rpartition(_STATE)[2]
        if state in _UNDER_WAY:
            return ""
        return "the kernel ended; its status says why" if state == "COMPLETED" else f"XRT ended it: {state}"

    def stop(self) -> None:
        """End the map behind the last command: its buffers on the card are erased.

        A slot must be free: fewer commands than slots are without an answer.
        """
        if not self.ended():
            write_record(
                self.commands[self._next % self.slots], stop_record(self._config, self._next).tobytes()
            )
            self._call.wait(_STOP_MS)


def _signed(word: int) -> int:
    """Return a word of 32 bits as `pyxrt` takes it."""
    return word - (1 << 32) if word >> 31 else word
