"""The oblivious map as specified: the response, touches and state after every operation.

A key has a random label: K of them lie in HBM, each other is a page of host memory. Every operation reveals
the label of its key, or a fresh one if it has none, and touches that page. It draws another label, under
which the item waits in HBM until its page is touched. This is one choice; with two labels it is BOLT's
remapping (arXiv 2509.01742).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from sim.golden.oram.front import draw, permute
from sim.golden.oram.position import MapEntry, PositionMap

Words = NDArray[np.uint64]
#: Maps operations [n] to their draws [n, `OramConfig.draws`, 2], as low and high 64 bits.
Draws = Callable[[Words], Words]
#: Permutes keys [n].
Permute = Callable[[Words], Words]

_WORD_BITS = 64
_HALF = (1 << 32) - 1
_WORD = (1 << _WORD_BITS) - 1


class ListOverflowError(Exception):
    """An item found its list and all overflow entries in use: the engine stops."""


class Command(NamedTuple):
    """A requested operation; ``rejected`` if its tag was wrong."""

    code: int
    key: int = 0
    value: bytes = b""
    rejected: bool = False


class Item(NamedTuple):
    """A key and its value; in a list with the number of the operation that appended it."""

    key: int
    value: bytes
    operation: int


class OperationOutcome(NamedTuple):
    """The response of an operation, and the labels and touches that it reveals."""

    #: ``status``, ``key``, ``value``: the response.
    status: Status
    key: int
    value: bytes
    labels: tuple[int, ...]  #: Labels revealed; none for a LOAD.
    drawn: int  #: Number of the operation that drew these labels: its own for an unknown key.
    #: For each touch: its page or None, and its record or None.
    touches: tuple[tuple[int | None, int | None], ...]

    @property
    def pages(self) -> list[int]:
        """Pages of the host that the operation touched, in order."""
        return [page for page, _ in self.touches if page is not None]


class ObliviousMap:
    """State of the map, and the operations on it.

    ``draws``: the random numbers, by operation. ``permute``: the keyed permutation of keys.
    """

    def __init__(self, config: OramConfig, draws: Draws, permute: Permute) -> None:
        self.config = config
        self._draws, self._permute = draws, permute
        self.position = PositionMap(config)
        #: Slots of each touched page: an item or None.
        self.pages: defaultdict[int, list[Item | None]] = defaultdict(lambda: [None] * config.slots)
        #: Writes of a page since it was sealed empty; its version is one more.
        self.writes: defaultdict[int, int] = defaultdict(int)
        #: Slots of each touched list and bin.
        self.records: defaultdict[int, list[Item | None]] = defaultdict(lambda: [None] * config.record_slots)
        #: Entries on chip: a record and its item, or None.
        self.overflow: list[tuple[int, Item] | None] = [None] * config.overflow_entries
        #: For each entry the operation that moved its item into a list, and the item's key. It stays taken
        #: for a window, since it holds the item's place, unless the item leaves the list.
        self.moved: dict[int, tuple[int, int]] = {}
        #: ``count``, ``loads``: operations so far, and LOADs among them.
        self.count = 0
        self.loads = 0
        # Cached: every touch uses both.
        self._window, self._pages = config.window, config.host_pages

    def run(self, commands: Iterable[Command]) -> list[OperationOutcome]:
        """Run operations in order.

        Raises `ListOverflowError` when the overflow is full; the state is that of the stopped engine.
        """
        commands = list(commands)
        blocks = self._draws(np.arange(self.count, self.count + len(commands), dtype=np.uint64)).tolist()
        permuted = self.permuted([command.key for command in commands])
        return [
            self._operate(command, u, words)
            for command, u, words in zip(commands, permuted, blocks, strict=True)
        ]

    def permuted(self, keys: Sequence[int]) -> list[int]:
        """Return keys permuted."""
        found: list[int] = self._permute(np.array(keys, np.uint64)).tolist()
        return found

    def record_of(self, word: int) -> int:
        """Return the record of a label drawn as 64 random bits: its page's record, or one of its bins."""
        product = word * self.config.labels
        label, below = product >> _WORD_BITS, product & _WORD
        in_host = label - self.config.hbm_labels
        if in_host >= 0:
            return in_host
        split = self.config.bin_split
        return self._pages + label * split + (below * split >> _WORD_BITS)

    def label_of(self, record: int) -> int:
        """Return the label of a record."""
        if record < self._pages:
            return self.config.hbm_labels + record
        return (record - self._pages) // self.config.bin_split

    def _operate(self, command: Command, permuted: int, blocks: Sequence[Sequence[int]]) -> OperationOutcome:
        number = self.count
        self.count += 1
        if self.config.touch == "one":
            fresh_words, miss_words = blocks[0][:1], blocks[0][1:]
        else:
            fresh_words, miss_words = blocks
        fresh = tuple(map(self.record_of, fresh_words))
        code, key, given = command.code, command.key, command.value
        if command.rejected:
            code, key = Code.NOP, 0
        entry = self.position.find(permuted) if Code.GET <= code <= Code.LOAD else None
        hit = entry is not None and code != Code.LOAD
        drawn = number
        if hit:
            assert entry is not None
            shown, drawn = entry.records, entry.drawn
        else:
            shown = tuple(map(self.record_of, miss_words))
        status = self._change_position(command, code, entry, MapEntry(permuted, fresh, number))
        # Touches: the item leaves its place.
        if code == Code.LOAD and not command.rejected:
            labels: tuple[int, ...] = ()
            touches = self._load_touches(miss_words)
        else:
            labels = tuple(map(self.label_of, shown))
            touches = self._touches(shown, hit, miss_words)
        own = None
        for page, record in touches:
            own = self._touch(number, page, record, key if hit else None) or own
        if status == Status.INSERTED or (hit and code != Code.DELETE):
            self._append(number, fresh, Item(key, own.value if own and code == Code.GET else given, number))
        before = own.value if own else bytes(self.config.value_bytes)
        return OperationOutcome(status, key, before, labels, drawn, touches)

    def _change_position(self, command: Command, code: int, entry: MapEntry | None, new: MapEntry) -> Status:
        """Change the position map, and return the operation's status."""
        if command.rejected:
            return Status.REJECTED
        if code == Code.NOP:
            return Status.MISS
        if not Code.GET <= code <= Code.LOAD:
            return Status.MALFORMED
        if entry is None:
            if code in (Code.GET, Code.DELETE):
                return Status.MISS
            room = len(self.position) < self.config.keys
            return Status.INSERTED if room and self.position.insert(new) else Status.FULL
        if code == Code.LOAD:
            return Status.DUPLICATE
        if code == Code.DELETE:
            self.position.remove(entry)
        else:
            entry.records, entry.drawn = new.records, new.drawn
        return Status.HIT

    def _touches(
        self, shown: Sequence[int], hit: bool, words: Sequence[int]
    ) -> tuple[tuple[int | None, int | None], ...]:
        """Return the pages and records of the revealed labels' records."""
        touches: list[tuple[int | None, int | None]] = []
        for record, word in zip(shown, words, strict=True):
            in_host = record < self._pages
            own = (record, record) if in_host else (None, record if hit else None)
            if not self._padded:
                touches.append(own)
            elif in_host:
                touches += [(None, None), own]
            else:
                touches += [own, self._dummy(word)]
        return tuple(touches)

    def _load_touches(self, words: Sequence[int]) -> tuple[tuple[int | None, int | None], ...]:
        """Return the touches of a LOAD: the next page; for a second label no page, or a random one."""
        page = self.loads % self._pages
        self.loads += 1
        none = (None, None)
        touches: list[tuple[int | None, int | None]] = []
        for at, word in enumerate(words):
            one = (page, page) if at == 0 else self._dummy(word) if self._padded else none
            touches += [none, one] if self._padded else [one]
        return tuple(touches)

    @property
    def _padded(self) -> bool:
        """Return whether a label has a touch for its record and one for a page: see `OramConfig.items`."""
        return self.config.items > self.config.label_count

    def _dummy(self, word: int) -> tuple[int, int]:
        page = (word & _HALF) * self._pages >> 32
        return page, page

    def _touch(self, number: int, page: int | None, record: int | None, key: int | None) -> Item | None:
        """Remove the item of ``key``, fill the page from its list, and the list from the overflow."""
        if record is None:
            return None
        items = self.records[record]
        own = _take(items, key)
        self.moved = {at: moved for at, moved in self.moved.items() if not (own and moved[1] == key)}
        if page is not None:
            slots = self.pages[page]
            own = _take(slots, key) or own
            seen = number - self._window
            waiting = (at for at, item in enumerate(items) if item and item.operation < seen)
            for at, item in enumerate(slots):
                if item is None:
                    found = next(waiting, None)
                    if found is None:
                        break
                    slots[at], items[found] = items[found], None
            self.writes[page] += 1
        for at, waiting_entry in enumerate(self.overflow):
            if waiting_entry and waiting_entry[0] == record and waiting_entry[1].key == key:
                own, self.overflow[at] = waiting_entry[1], None
        for at, waiting_entry in enumerate(self.overflow):
            if waiting_entry and waiting_entry[0] == record:
                if None in items:
                    items[items.index(None)] = waiting_entry[1]._replace(operation=number)
                    self.overflow[at], self.moved[at] = None, (number, waiting_entry[1].key)
                break
        return own

    def load(self, record: int) -> int:
        """Count the items of a record's page and list."""
        page = self.config.slots - self.pages[record].count(None) if record < self._pages else 0
        return page + self.config.record_slots - self.records[record].count(None)

    def _append(self, number: int, fresh: Sequence[int], item: Item) -> None:
        record = min(fresh, key=self.load) if len(fresh) > 1 else fresh[0]  # the first of equals
        items = self.records[record]
        if None in items:
            items[items.index(None)] = item
            return
        self.moved = {at: moved for at, moved in self.moved.items() if moved[0] >= number - self._window}
        free = (at for at, waits in enumerate(self.overflow) if waits is None and at not in self.moved)
        if (at := next(free, None)) is None:
            raise ListOverflowError(f"operation {number}: list {record} and the overflow entries are full")
        self.overflow[at] = record, item


def keyed_map(config: OramConfig, *, permutation_key: bytes, draw_key: bytes) -> ObliviousMap:
    """Return an empty map with AES for its permutation and draws, as in the engine."""
    return ObliviousMap(
        config,
        lambda operations: np.ascontiguousarray(draw(draw_key, operations, draws=config.draws)).view("<u8"),
        lambda keys: permute(permutation_key, keys, key_bits=config.key_bits),
    )


def _take(slots: list[Item | None], key: int | None) -> Item | None:
    """Remove the item of ``key``, if it is here."""
    for at, item in enumerate(slots):
        if item is not None and item.key == key:
            slots[at] = None
            return item
    return None
