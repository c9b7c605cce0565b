"""When each part of the stage has its turn."""

from __future__ import annotations

from functools import cached_property

from hw.oram.config import BEAT_BYTES, BLOCK_BYTES, RECORD_HEADER_BYTES, OramConfig

#: Bytes of a key, and bytes before the keys of a page: tag, and which slots are in use.
KEY_BYTES = 8
PAGE_KEYS_OFFSET = BLOCK_BYTES + 8
#: Slots whose occupied ones are counted within a cycle.
_COUNTED_AT_ONCE = 14


class Schedule:
    """Cycles from a touch, which comes with the first beat of its page, to each step of the stage.

    The steps of the *loop* (``loop`` to ``append``) depend on the touch before: they take four cycles, or
    five where lists are long and touches as far apart.  All others look ahead or come behind.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config

    @property
    def rank_cycles(self) -> int:
        """Cycles in which the items of a list are counted."""
        return 1 if self._config.list_slots <= _COUNTED_AT_ONCE else 2

    @property
    def count_cycles(self) -> int:
        """Cycles in which the free slots of a page are counted."""
        return 1 if self._config.slots <= _COUNTED_AT_ONCE else 2

    @property
    def page_keys_beat(self) -> int:
        """The last beat of a page with a key."""
        return (PAGE_KEYS_OFFSET + KEY_BYTES * self._config.slots - 1) // BEAT_BYTES

    @property
    def page_slots(self) -> int:
        """All keys of the page are compared."""
        return self.page_keys_beat * self._config.page_beat_cycles + 3

    @property
    def _record_keys(self) -> int:
        last = (RECORD_HEADER_BYTES + KEY_BYTES * self._config.list_slots - 1) // BEAT_BYTES
        return max(1, last)

    @cached_property
    def loop(self) -> int:
        """The list's bitmap is chosen among those of the touches before."""
        return max(5, self.page_slots + self.count_cycles, self._record_keys + 3)

    @property
    def recall(self) -> int:
        """The touch's record and key are looked up among recent ones; fresh records in the next cycles."""
        return self.loop - 4

    @property
    def record(self) -> int:
        """The record is asked for."""
        return self.loop - 3 - self._record_keys

    @property
    def seal(self) -> int:
        """The page's next version is given out."""
        return self.record + 2

    @property
    def retry(self) -> int:
        """The items that go into the page are known."""
        return self.loop + 1 + self.rank_cycles

    @property
    def append(self) -> int:
        """The operation's item takes its place."""
        return self.retry + 1

    @property
    def load(self) -> int:
        """The record's first beat comes out of its delay: its own item is known."""
        return self.loop + 1

    @property
    def emit(self) -> int:
        """The whole record is there and what goes into the page known; the page's first beat is composed."""
        return max(self.load + self._config.record_beats, self.retry + 2)

    @property
    def page(self) -> int:
        """The page's first beat leaves."""
        return self.emit + 3

    @property
    def values(self) -> int:
        """All values of the touch are there."""
        config = self._config
        return self.page + (config.page_beats - 1) * config.page_beat_cycles + 1

    @property
    def response(self) -> int:
        """The first row of the response."""
        return self.values + 3
