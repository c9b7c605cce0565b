"""The map without values and buckets, compiled: for statistics over many millions of operations.

Lists, pages and overflow behave as in `sim.golden.oram.map`. Keys are 0, 1, 2 ..., and the position map finds
each of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.scheduler.compiled import compiled
from sim.golden.oram.map import ListOverflowError

Int = NDArray[np.int64]
#: State of many keys: a map of 2^26 takes 2.5 GB.
Small = NDArray[np.int32]

#: A key that no slot holds.
_NO_KEY = -2
_GET, _PUT, _DELETE, _LOAD = int(Code.GET), int(Code.PUT), int(Code.DELETE), int(Code.LOAD)


class Operations(NamedTuple):
    """Input of a run: codes and keys [n]; the draws as records [n, 1 or 2]; as many pages or -1."""

    codes: Int
    keys: Int
    fresh: Int
    miss: Int
    dummies: Int


def _none(*shape: int) -> Small:
    return np.full(shape, -1, np.int32)


class State(NamedTuple):
    """Arrays of the state; -1 is no key, no record and no page."""

    labels: Small  #: [keys, 1 or 2]: records of each key's labels.
    pages: Small  #: [H, Z]: keys in the slots of each page.
    #: ``lists``, ``since``: [records, E]: keys in the slots of each list, and the operations that appended
    #: them.
    lists: Small
    since: Small
    overflow: Small  #: [entries, 2]: records and keys.
    moved: Small  #: [entries, 2]: operations that moved an entry's item into a list, and its key.
    #: [5]: operations, LOADs, overflow entries in use, the last operation that moved such an item, keys.
    counters: Int
    peaks: Int  #: [2]: peak items in a list, peak overflow entries in use.


class FastMap:
    """An empty map of ``keys`` possible keys."""

    def __init__(self, config: OramConfig, keys: int) -> None:
        self.config = config
        self.state = State(
            labels=_none(keys, config.label_count),
            pages=_none(config.host_pages, config.slots),
            lists=_none(config.records, config.record_slots),
            since=_none(config.records, config.record_slots),
            overflow=_none(config.overflow_entries, 2),
            moved=_none(config.overflow_entries, 2),
            counters=np.array([0, 0, 0, -config.window - 1, 0]),
            peaks=np.zeros(2, np.int64),
        )

    def run(self, codes: Int, keys: Int, draws: NDArray[np.uint64]) -> tuple[Int, Int]:
        """Run operations with ``draws`` [n, blocks, 2] of `sim.golden.oram.map.Draws`.

        Returns
        -------
        labels, pages : [n, 1 or 2]
            The label revealed (-1 for a LOAD), and the page touched, or -1.

        Raises
        ------
        ListOverflowError
            When an item finds its list and the overflow full.
        """
        config = self.config
        count = config.label_count
        words = draws.reshape(len(codes), 2 * count)
        fresh, miss = self._records(words[:, :count]), self._records(words[:, count:])
        dummies = ((words[:, count:] & np.uint64(2**32 - 1)) * np.uint64(config.host_pages)) >> np.uint64(32)
        if config.items == count:
            dummies = np.full_like(fresh, -1)
        labels, pages = np.full_like(fresh, -1), np.full_like(fresh, -1)
        operations = Operations(codes, keys, fresh, miss, dummies.astype(np.int64))
        if not _run(operations, self.state, config.window, config.keys, labels, pages):
            number = self.state.counters[0] - 1
            raise ListOverflowError(f"operation {number}: a list and the overflow entries are full")
        in_host = labels < config.host_pages
        of_bins = (labels - config.host_pages) // config.bin_split
        labels = np.where(labels < 0, -1, np.where(in_host, config.hbm_labels + labels, of_bins))
        return labels, pages

    def _records(self, words: NDArray[np.uint64]) -> Int:
        """Return the records of drawn labels: M and S are powers of two, so both are bits of the word."""
        config = self.config
        bits = config.labels.bit_length() - 1
        label = (words >> np.uint64(64 - bits)).astype(np.int64)
        below = (words << np.uint64(bits)) >> np.uint64(32)
        part = (below * np.uint64(config.bin_split) >> np.uint64(32)).astype(np.int64)
        bins = config.host_pages + label * config.bin_split + part
        return np.where(label < config.hbm_labels, bins, label - config.hbm_labels)

    def lengths(self) -> tuple[Int, Int]:
        """Count the items waiting for each page, and those in each HBM bin, overflow included."""
        overflow = self.state.overflow[:, 0]
        waiting = (self.state.lists >= 0).sum(axis=1)
        np.add.at(waiting, overflow[overflow >= 0], 1)
        return waiting[: self.config.host_pages], waiting[self.config.host_pages :]


@compiled
def _run(operations: Operations, state: State, window: int, most: int, revealed: Int, touched: Int) -> bool:
    """Run the operations, and write the labels and pages that they reveal; False when the overflow is
    full.
    """
    hosts, width = len(state.pages), operations.fresh.shape[1]
    counters, labels = state.counters, state.labels
    for n in range(len(operations.codes)):
        number, code, key = counters[0], operations.codes[n], operations.keys[n]
        counters[0] += 1
        known = labels[key, 0] >= 0
        hit = known and code in (_GET, _PUT, _DELETE)
        new = not known and counters[4] < most and code in (_PUT, _LOAD)
        for part in range(width):
            record = labels[key, part] if hit else operations.miss[n, part]
            page = record
            if code == _LOAD:
                page = counters[1] % hosts if part == 0 else hosts
            else:
                revealed[n, part] = record
            if page >= hosts:
                if hit:
                    _touch(state, number, -1, record, key, window)
                page = operations.dummies[n, part]
            if page >= 0:
                _touch(state, number, page, page, key if hit else _NO_KEY, window)
            touched[n, part] = page
        counters[1] += code == _LOAD
        if hit and code == _DELETE:
            labels[key] = -1
            counters[4] -= 1
        elif hit or new:
            counters[4] += new
            labels[key] = operations.fresh[n]
            to = operations.fresh[n, 0]
            if width == 2 and _load(state, operations.fresh[n, 1]) < _load(state, to):
                to = operations.fresh[n, 1]
            if not _append(state, number, to, key, window):
                return False
    return True


@compiled
def _touch(state: State, number: int, page: int, record: int, key: int, window: int) -> None:
    """Remove ``key`` from a page (-1 for none) and a list, and refill them."""
    items, since, overflow = state.lists[record], state.since[record], state.overflow
    for at in range(len(items)):
        if items[at] == key:
            items[at] = -1
            if number - state.counters[3] <= window:
                for entry in range(len(overflow)):
                    if state.moved[entry, 1] == key:
                        state.moved[entry] = -1
    if page >= 0:
        waiting = 0
        for slot in range(state.pages.shape[1]):
            if state.pages[page, slot] == key:
                state.pages[page, slot] = -1
        for slot in range(state.pages.shape[1]):
            if state.pages[page, slot] >= 0:
                continue
            while waiting < len(items) and (items[waiting] < 0 or since[waiting] >= number - window):
                waiting += 1
            if waiting == len(items):
                break
            state.pages[page, slot], items[waiting] = items[waiting], -1
    if state.counters[2] == 0:
        return
    for at in range(len(overflow)):
        if overflow[at, 0] == record and overflow[at, 1] == key:
            overflow[at] = -1
            state.counters[2] -= 1
    for at in range(len(overflow)):
        if overflow[at, 0] == record:
            for slot in range(len(items)):
                if items[slot] < 0:
                    items[slot], since[slot] = overflow[at, 1], number
                    state.moved[at, 0], state.moved[at, 1] = number, overflow[at, 1]
                    state.counters[3] = number
                    overflow[at] = -1
                    state.counters[2] -= 1
                    break
            break


@compiled
def _append(state: State, number: int, record: int, key: int, window: int) -> bool:
    """Append an item to a list, or to the overflow; False when both are full."""
    items, overflow = state.lists[record], state.overflow
    for slot in range(len(items)):
        if items[slot] < 0:
            items[slot], state.since[record, slot] = key, number
            state.peaks[0] = max(state.peaks[0], _used(items))
            return True
    for at in range(len(overflow)):
        kept = state.moved[at, 0] >= 0 and number - state.moved[at, 0] <= window
        if overflow[at, 0] < 0 and not kept:
            overflow[at, 0], overflow[at, 1] = record, key
            state.counters[2] += 1
            state.peaks[1] = max(state.peaks[1], state.counters[2])
            return True
    return False


@compiled
def _load(state: State, record: int) -> int:
    """Count the items of a record's page and list."""
    page = _used(state.pages[record]) if record < len(state.pages) else 0
    return page + _used(state.lists[record])


@compiled
def _used(slots: Small) -> int:
    """Count the slots in use."""
    used = 0
    for key in slots:
        used += key >= 0
    return used


@compiled
def fill_buckets(homes: Int, entries: int, removed: Int) -> tuple[Int, int]:
    """Insert keys into two tables of buckets: into the emptier bucket, the first of equals.

    ``homes``: int [n, 2]; the bucket of each key in either table. ``removed``: int [n]; index of a key in
    ``homes`` to remove before each insertion, or -1.

    Returns
    -------
    fill : int [2, buckets]
        Entries in use at the end.
    failed : int
        Keys that found both full.
    """
    fill = np.zeros((2, homes.max() + 1), np.int64)
    table = np.full(len(homes), -1, np.int8)
    failed = 0
    for n in range(len(homes)):
        gone = removed[n]
        if gone >= 0 and table[gone] >= 0:
            fill[table[gone], homes[gone, table[gone]]] -= 1
            table[gone] = -1
        into = 1 if fill[1, homes[n, 1]] < fill[0, homes[n, 0]] else 0
        if fill[into, homes[n, into]] == entries:
            failed += 1
        else:
            fill[into, homes[n, into]] += 1
            table[n] = into
    return fill, failed


@compiled
def leaky_touches(keys: Int, draws: Int, others: Int, labels: Int) -> Int:
    """Return the touches of a leaky map: of two drawn labels it keeps the one with fewer keys.

    An operation touches the kept label and a random one. The label depends on loads, and loads on earlier
    accesses: the positive control of `sim.golden.oram.leakage`.

    ``keys``: [n]; keys accessed. ``draws``, ``others``: [n, 2], [n]; labels drawn, and random labels touched
    too. ``labels``: [keys]; first label of each key; changed.

    Returns
    -------
    pages : [n, 2]
    """
    loads = np.zeros(draws.max() + 1, np.int64)
    for label in labels:
        loads[label] += 1
    pages = np.empty((len(keys), 2), np.int64)
    for n in range(len(keys)):
        label = labels[keys[n]]
        pages[n, 0], pages[n, 1] = label, others[n]
        loads[label] -= 1
        kept = draws[n, 1] if loads[draws[n, 1]] < loads[draws[n, 0]] else draws[n, 0]
        labels[keys[n]] = kept
        loads[kept] += 1
    return pages
