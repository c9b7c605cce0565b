"""How records get to the engine and back, by whatever hosts carry them."""

from typing import Protocol

from hw.oram.driver.keys import Secrets


class Transport(Protocol):
    """Both rings of a map. It sees sealed records alone, but for `initialize`."""

    @property
    def slots(self) -> int:
        """Slots of either ring, a power of two."""
        ...

    def initialize(self, secrets: Secrets) -> None:
        """Reset the engine, clear both rings, and begin a launch that initializes the map.

        The launch has no end but a stop record. Numbers of cleared commands are those of no command.
        """
        ...

    def write(self, number: int, record: bytes) -> None:
        """Write a command into the slot of its number, the first 8 bytes last."""
        ...

    def read(self, number: int) -> bytes:
        """Return the record in a response's slot as it is."""
        ...

    def ended(self) -> str:
        """Return the reason of the launch's end, or an empty text while it runs."""
        ...
