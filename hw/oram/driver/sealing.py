"""Commands sealed for the ring in host memory, and responses opened: AES-128-GCM under a session's working
key.

A record of R bytes: sequence number 8, flags 8; tag 16; then sealed code or status 1, zeros or confirmation
7, key 8, value to whole blocks of 16; zeros. The initialization vector is the sequence number, 8 bytes, and
the direction, 4 bytes, the lowest byte first. Sequence number and flags are not sealed: under another number
the tag is wrong.
"""

from typing import NamedTuple

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from hw.launch import Bytes
from hw.oram.config import BLOCK_BYTES, OramConfig
from hw.oram.driver.keys import CONFIRM_BYTES, Session
from hw.oram.driver.operations import UNVERIFIED, OperationResults, Operations

#: Last word of the initialization vector.
COMMAND, RESPONSE = 0, 1
#: Flag of a record that ends a launch without a command.
STOP = 1
#: Bytes at which tag and sealed text begin.
TAG, SEALED = BLOCK_BYTES, 2 * BLOCK_BYTES
#: Bytes of a response's sealed text that confirm keys and epoch.
CONFIRM = slice(1, 1 + CONFIRM_BYTES)


class Opened(NamedTuple):
    """Opened commands or responses of the ring."""

    results: OperationResults  #: `UNVERIFIED` and zeros for a record that is not both of the next.
    genuine: NDArray[np.bool_]  #: Whether each has its slot's number and a right tag.
    #: Whether each is genuine and has the session's confirmation; commands have none. A genuine response
    #: without it is of a map with another seed: it must not be used further.
    confirmed: NDArray[np.bool_]


def seal_commands(config: OramConfig, session: Session, operations: Operations, *, first: int = 0) -> Bytes:
    """Return the ring's records [n, R] of operations whose sequence numbers begin with ``first``."""
    messages = _messages(config, operations.codes, operations.keys, operations.values)
    return _seal(config, session, messages, first, COMMAND)


def stop_record(config: OramConfig, sequence: int) -> Bytes:
    """Return the record [R] that ends a launch behind ``sequence`` commands since the map was initialized."""
    record = np.zeros(config.command_bytes, np.uint8)
    record[:8] = np.frombuffer(sequence.to_bytes(8, "little"), np.uint8)
    record[8] = STOP
    return record


def open_commands(config: OramConfig, session: Session, records: Bytes, *, first: int = 0) -> Opened:
    """Undo `seal_commands`, as the engine does; results hold codes as statuses."""
    return _open(config, session, records, first, COMMAND)


def seal_responses(
    config: OramConfig, session: Session, results: OperationResults, *, first: int = 0
) -> Bytes:
    """Return the ring's records [n, R] of results."""
    messages = _messages(config, results.statuses, results.keys, results.values)
    messages[:, CONFIRM] = np.frombuffer(session.confirm, np.uint8)
    return _seal(config, session, messages, first, RESPONSE)


def open_responses(config: OramConfig, session: Session, records: Bytes, *, first: int = 0) -> Opened:
    """Undo `seal_responses`, as the client does."""
    return _open(config, session, records, first, RESPONSE)


def _messages(config: OramConfig, codes: Bytes, keys: NDArray[np.uint64], values: Bytes) -> Bytes:
    """Return the plain text: code or status, key, value."""
    messages = np.zeros((len(codes), sealed_bytes(config)), np.uint8)
    messages[:, 0] = codes
    messages[:, 8:16] = keys.astype("<u8")[:, None].view(np.uint8)
    messages[:, 16 : 16 + config.value_bytes] = values
    return messages


def sealed_bytes(config: OramConfig) -> int:
    """Return the bytes of the sealed text: code or status and confirmation, key, value."""
    return BLOCK_BYTES + -(-config.value_bytes // BLOCK_BYTES) * BLOCK_BYTES


def _ivs(sequence: NDArray[np.uint64], direction: int) -> Bytes:
    halves = (sequence.astype("<u8")[:, None], np.full((len(sequence), 1), direction, "<u4"))
    return np.concatenate([half.view(np.uint8) for half in halves], axis=1)


def _numbers(first: int, count: int) -> NDArray[np.uint64]:
    return np.arange(count, dtype=np.uint64) + np.uint64(first)


def _seal(config: OramConfig, session: Session, messages: Bytes, first: int, direction: int) -> Bytes:
    numbers = _numbers(first, len(messages))
    cipher, length = AESGCM(session.key), messages.shape[1]
    records = np.zeros((len(messages), config.command_bytes), np.uint8)
    records[:, :8] = numbers.astype("<u8")[:, None].view(np.uint8)
    for record, iv, message in zip(records, _ivs(numbers, direction), messages, strict=True):
        sealed = np.frombuffer(cipher.encrypt(iv.tobytes(), message.tobytes(), None), np.uint8)
        record[SEALED : SEALED + length], record[TAG:SEALED] = sealed[:length], sealed[length:]
    return records


def _open(config: OramConfig, session: Session, records: Bytes, first: int, direction: int) -> Opened:
    numbers = _numbers(first, len(records))
    cipher, end = AESGCM(session.key), SEALED + sealed_bytes(config)
    messages = np.zeros((len(records), sealed_bytes(config)), np.uint8)
    genuine = np.ascontiguousarray(records[:, :8]).view("<u8")[:, 0] == numbers
    for n, iv in enumerate(_ivs(numbers, direction)):
        sealed = records[n, SEALED:end].tobytes() + records[n, TAG:SEALED].tobytes()
        try:
            message = cipher.decrypt(iv.tobytes(), sealed, None)
        except InvalidTag:
            genuine[n] = False
        if genuine[n]:  # a message of another sender is never decrypted
            messages[n] = np.frombuffer(message, np.uint8)
    confirmed = genuine.copy()
    if direction == RESPONSE:
        confirmed &= (messages[:, CONFIRM] == np.frombuffer(session.confirm, np.uint8)).all(axis=1)
        messages[~confirmed] = 0
    results = OperationResults(
        statuses=np.where(confirmed, messages[:, 0], UNVERIFIED).astype(np.uint8),
        keys=np.ascontiguousarray(messages[:, 8:16]).view("<u8")[:, 0].astype(np.uint64),
        values=messages[:, 16 : 16 + config.value_bytes],
    )
    return Opened(results, genuine, confirmed)
