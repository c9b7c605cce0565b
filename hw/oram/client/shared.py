"""Rings in a file that the client's and the host's process map into memory.

A launch outlives the processes of its clients.
"""

import mmap
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hw.errors import check_power_of_two
from hw.launch import Bytes
from hw.oram.client.sealer import NUMBER_BYTES
from hw.oram.config import OramConfig
from hw.oram.driver.keys import Secrets

#: Bytes of text behind the rings: why the launch ended.
_REASON_BYTES = 64


class SharedRings:
    """A `Transport` in a file, best in memory (``/dev/shm``).

    ``path``: made if it is missing. ``load``: resets the engine, writes keys and epoch past the host, and
    begins the launch. The host's process has none. See docs/oram-client.md.
    """

    def __init__(
        self,
        path: Path,
        config: OramConfig,
        *,
        slots: int,
        load: Callable[[Secrets], None] | None = None,
    ) -> None:
        check_power_of_two("slots", slots, 2, 1 << 20)
        self.slots = slots
        self._load = load
        size = 2 * slots * config.command_bytes
        with path.open("a+b") as file:
            if file.seek(0, 2) != size + _REASON_BYTES:
                file.truncate(size + _REASON_BYTES)
            self._content: Bytes = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint8)
        rings = self._content[:size].reshape(2, slots, -1)
        #: [slots, R], in the memory that both processes map.
        self.commands: Bytes = rings[0]
        self.responses: Bytes = rings[1]
        self._reason = self._content[size:]

    def initialize(self, secrets: Secrets) -> None:
        """See `Transport`."""
        self.clear()
        assert self._load is not None
        self._load(secrets)

    def clear(self) -> None:
        """Clear both rings."""
        clear_rings(self.commands, self.responses)
        self._reason[:] = 0

    def write(self, number: int, record: bytes) -> None:
        """See `Transport`."""
        write_record(self.commands[number % self.slots], record)

    def read(self, number: int) -> bytes:
        """See `Transport`."""
        return self.responses[number % self.slots].tobytes()

    def ended(self) -> str:
        """See `Transport`."""
        return self._reason.tobytes().rstrip(b"\0").decode()

    def end(self, reason: str) -> None:
        """Note why the launch ended, as the host's process does."""
        text = reason.encode()[:_REASON_BYTES]
        self._reason[: len(text)] = np.frombuffer(text, np.uint8)


def clear_rings(commands: Bytes, responses: Bytes) -> None:
    """Clear both rings [slots, R]: no command has the number of a cleared one."""
    commands[:] = 255
    responses[:] = 0


def write_record(slot: Bytes, record: bytes) -> None:
    """Write a record into its slot. The number is written last: it marks the record as complete."""
    row = np.frombuffer(record, np.uint8)
    slot[NUMBER_BYTES:] = row[NUMBER_BYTES:]
    slot[:NUMBER_BYTES] = row[:NUMBER_BYTES]
