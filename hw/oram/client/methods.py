"""The operations of a map for a program in Python."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from hw.errors import InputError
from hw.oram.client.errors import MapFullError, RejectedError
from hw.oram.client.operation import Operation, Outcome
from hw.oram.core.layouts import Code, Status


class MapMethods(ABC):
    """A map of whole numbers to bytes.

    ``value_bytes``: bytes of every value. ``key_bits``: bits of a key.

    Behaviour
    ---------
    Operations of one call have no order among each other, and neither have calls that overlap. A call sees
    all calls that ended before it began. An operation whose command was rejected is sent again, behind
    others.

    ``number`` makes a call repeatable: a program that was killed within its call repeats it with the same
    number and the same operations. It is executed once, and returns its outcome. Numbers rise.
    """

    value_bytes: int
    key_bits: int

    @abstractmethod
    def execute(self, operations: Sequence[Operation], number: int | None = None) -> Sequence[Outcome]:
        """Return the outcomes of the operations of a call."""

    def get(self, key: int, *, number: int | None = None) -> bytes | None:
        """Return the value of a key, or None."""
        return self.get_many([key], number=number)[0]

    def put(self, key: int, value: bytes, *, number: int | None = None) -> bytes | None:
        """Set the value of a key, and return the one before, or None."""
        return self.put_many({key: value}, number=number)[0]

    def delete(self, key: int, *, number: int | None = None) -> bytes | None:
        """Remove a key, and return its value, or None."""
        return self.delete_many([key], number=number)[0]

    def get_many(self, keys: Iterable[int], *, number: int | None = None) -> list[bytes | None]:
        """Return the value of each key, or None."""
        return self._run([self._operation(Code.GET, key) for key in keys], number)

    def put_many(self, items: Mapping[int, bytes], *, number: int | None = None) -> list[bytes | None]:
        """Set the values of keys, and return the ones before, or None.

        Raises `MapFullError` if one found no room; the others are set.
        """
        return self._run([self._operation(Code.PUT, key, value) for key, value in items.items()], number)

    def delete_many(self, keys: Iterable[int], *, number: int | None = None) -> list[bytes | None]:
        """Remove keys, and return their values, or None. Of equal keys one has the value.

        Equal keys take a command each: the host counts commands.
        """
        return self._run([self._operation(Code.DELETE, key) for key in keys], number)

    def _operation(self, code: Code, key: int, value: bytes | None = None) -> Operation:
        if not 0 <= key < 1 << self.key_bits:
            raise InputError("key", key, f"from 0 to 2^{self.key_bits} - 1")
        if value is not None and len(value) != self.value_bytes:
            raise InputError("bytes of a value", len(value), f"{self.value_bytes}")
        return Operation(code, key, bytes(self.value_bytes) if value is None else bytes(value))

    def _run(self, operations: Sequence[Operation], number: int | None) -> list[bytes | None]:
        if not operations:
            return []
        outcomes = self.execute(operations, number)
        check_outcomes(operations, outcomes)
        return [outcome.value if outcome.status == Status.HIT else None for outcome in outcomes]


def check_outcomes(operations: Sequence[Operation], outcomes: Sequence[Outcome]) -> None:
    """Raise an error that names the first key whose operation had no effect."""
    for operation, outcome in zip(operations, outcomes, strict=True):
        name = f"{operation.code.name.lower()} of key {operation.key}"
        match outcome.status:
            case Status.FULL:
                raise MapFullError(f"{name} found no room; it had no effect")
            case Status.REJECTED:
                raise RejectedError(f"{name}: each of its commands was rejected; it had no effect")
            case Status.DUPLICATE:
                raise InputError("items", f"key {operation.key} again", "one for each key")
