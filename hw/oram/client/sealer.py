"""Records of a session, sealed and opened."""

from collections.abc import Sequence

import numpy as np

from hw.oram.client.errors import LostMapError
from hw.oram.client.operation import Operation, Outcome
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Status
from hw.oram.driver.keys import Secrets
from hw.oram.driver.operations import Operations
from hw.oram.driver.sealing import open_responses, seal_commands

#: Bytes of the sequence number at the front of a record.
NUMBER_BYTES = 8


def number_of(record: bytes) -> int:
    """Return the sequence number that a record says it has."""
    return int.from_bytes(record[:NUMBER_BYTES], "little")


class Sealer:
    """Seals commands and opens responses under the keys of an epoch."""

    def __init__(self, config: OramConfig, secrets: Secrets) -> None:
        self._config = config
        self._session = secrets.session

    def seal(self, first: int, operations: Sequence[Operation]) -> list[bytes]:
        """Return the records of operations with consecutive numbers; the same ones for the same arguments."""
        packed = Operations(
            codes=np.array([operation.code for operation in operations], np.uint8),
            keys=np.array([operation.key for operation in operations], np.uint64),
            values=np.frombuffer(b"".join(operation.value for operation in operations), np.uint8).reshape(
                -1, self._config.value_bytes
            ),
        )
        records = seal_commands(self._config, self._session, packed, first=first)
        return [record.tobytes() for record in records]

    def open(self, first: int, records: Sequence[bytes]) -> list[Outcome]:
        """Return the responses with consecutive numbers up to the first that is not genuine.

        A record that is written only in part is not genuine.

        Raises `LostMapError` for a genuine response without the confirmation of the seed and the epoch.
        """
        rows = np.frombuffer(b"".join(records), np.uint8).reshape(-1, self._config.command_bytes)
        found, genuine, confirmed = open_responses(self._config, self._session, rows, first=first)
        if (genuine & ~confirmed).any():
            raise LostMapError("the engine has another seed or epoch than its client")
        count = len(records) if genuine.all() else int(np.argmin(genuine))
        return [
            Outcome(Status(status), value.tobytes())
            for status, value in zip(found.statuses[:count].tolist(), found.values[:count], strict=True)
        ]
