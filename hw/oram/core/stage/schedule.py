"""Cycle of each step of the stage."""

from functools import cached_property

from hw.oram.config import BEAT_BYTES, BLOCK_BYTES, RECORD_HEADER_BYTES, OramConfig

#: Bytes of a key, and bytes before the keys of a page: tag and bitmap.
KEY_BYTES = 8
PAGE_KEYS_OFFSET = BLOCK_BYTES + 8
#: Slots that are counted within a cycle.
_COUNTED_AT_ONCE = 14


class StageSchedule:
    """Cycles from a touch and its page's first beat to each step of the stage.

    The steps of the *loop* (``loop`` to ``append``) depend on the previous touch. They take four cycles, or
    five for long lists, whose touches are as far apart. The other steps precede or follow the loop.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config

    @property
    def rank_cycles(self) -> int:
        """Cycles to count the items of a list."""
        return 1 if self._config.record_slots <= _COUNTED_AT_ONCE else 2

    @property
    def count_cycles(self) -> int:
        """Cycles to count the free slots of a page."""
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
        last = (RECORD_HEADER_BYTES + KEY_BYTES * self._config.record_slots - 1) // BEAT_BYTES
        return max(1, last)

    @cached_property
    def loop(self) -> int:
        """The list's bitmap is selected among those of the previous touches."""
        return max(5, self.page_slots + self.count_cycles, self._record_keys + 3)

    @property
    def recall(self) -> int:
        """The touch's record and key are looked up in the log; fresh records in the next cycles."""
        return self.loop - 4

    @property
    def record(self) -> int:
        """The record is requested."""
        return self.loop - 3 - self._record_keys

    @property
    def seal(self) -> int:
        """The page's next version is sent."""
        return self.record + 2

    @property
    def retry(self) -> int:
        """The items that go into the page are known."""
        return self.loop + 1 + self.rank_cycles

    @property
    def append(self) -> int:
        """The operation's item is placed."""
        return self.retry + 1

    @property
    def load(self) -> int:
        """The record's first beat leaves its delay: its own item is known."""
        return self.loop + 1

    @property
    def emit(self) -> int:
        """The whole record has arrived and the page's items are known; the page's first beat is composed."""
        return max(self.load + self._config.record_beats, self.retry + 2)

    @property
    def page(self) -> int:
        """The page's first beat leaves."""
        return self.emit + 3

    @property
    def values(self) -> int:
        """All values of the touch have arrived."""
        config = self._config
        return self.page + (config.page_beats - 1) * config.page_beat_cycles + 1

    @property
    def response(self) -> int:
        """The first row of the response."""
        return self.values + 3
