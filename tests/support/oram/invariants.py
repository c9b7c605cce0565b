"""Invariants of the map's state before and after every operation."""

from __future__ import annotations

from collections import Counter, defaultdict

from sim.golden.oram.map import ObliviousMap


def check_invariants(state: ObliviousMap, writes: Counter[int] | None = None) -> None:
    """Check that no item is lost, doubled or in a wrong place.

    ``writes``: number of touches of each page so far, if known: versions must agree.

    Raises
    ------
    ValueError
        Names the violated invariant.
    """
    _check_position(state)
    places = _places(state)
    live = state.position.entries
    if len(live) > state.config.keys:
        raise ValueError(f"{len(live)} keys, more than {state.config.keys}")
    if sum(len(found) for found in places.values()) != len(live):
        raise ValueError(f"{len(live)} keys, but {sum(map(len, places.values()))} items")
    for key, found in places.items():
        if len(found) != 1:
            raise ValueError(f"key {key:#x} is in {len(found)} places")
    keys = list(places)
    for key, permuted in zip(keys, state.permuted(keys), strict=True):
        entry = live.get(permuted)
        if entry is None:
            raise ValueError(f"key {key:#x} is stored and unknown to the position map")
        if places[key][0] not in entry.records:
            raise ValueError(f"key {key:#x} lies with {places[key][0]}, and its labels say {entry.records}")
    for record, _ in filter(None, state.overflow):
        # A touch moves one item at most: a list with room may have items in the overflow.
        if not 0 <= record < state.config.records:
            raise ValueError(f"overflow of record {record}, which there is not")
    if writes is not None and +Counter(state.writes) != +writes:
        raise ValueError("versions are not the writes of pages")


def _check_position(state: ObliviousMap) -> None:
    """Check that every entry is in its key's bucket, once, and names existing records."""
    position = state.position
    found: dict[int, int] = {}
    for number, table in enumerate(position.tables):
        for bucket, slots in table.items():
            if len(slots) != state.config.bucket_entries:
                raise ValueError(f"bucket {bucket} of table {number} has {len(slots)} slots")
            for entry in filter(None, slots):
                if position.buckets(entry.permuted)[number] != bucket:
                    raise ValueError(f"entry {entry.permuted:#x} is not in its bucket")
                if position.permuted(number, bucket, position.tag(number, entry.permuted)) != entry.permuted:
                    raise ValueError(f"entry {entry.permuted:#x} is not what its tag says")
                if entry.permuted in found:
                    raise ValueError(f"entry {entry.permuted:#x} is there twice")
                if position.find(entry.permuted) is not entry:
                    raise ValueError(f"entry {entry.permuted:#x} is not the one that is found")
                found[entry.permuted] = number
                if len(entry.records) != state.config.label_count or not all(
                    0 <= record < state.config.records for record in entry.records
                ):
                    raise ValueError(f"entry {entry.permuted:#x} has records {entry.records}")
    if len(found) != len(position.entries):
        raise ValueError(f"{len(position.entries)} entries are known, {len(found)} are in buckets")


def _places(state: ObliviousMap) -> dict[int, list[int]]:
    """Return for each key the records whose page, list or overflow holds it."""
    config = state.config
    places: defaultdict[int, list[int]] = defaultdict(list)
    for what, stored, slots, end in (
        ("page", state.pages, config.slots, config.host_pages),
        ("record", state.records, config.record_slots, config.records),
    ):
        for at, items in stored.items():
            if not 0 <= at < end:
                raise ValueError(f"{what} {at}, which there is not")
            if len(items) != slots:
                raise ValueError(f"{what} {at} has {len(items)} slots")
            for item in filter(None, items):
                places[item.key].append(at)
    if len(state.overflow) != config.overflow_entries:
        raise ValueError(f"{len(state.overflow)} overflow entries")
    for record, item in filter(None, state.overflow):
        places[item.key].append(record)
    return places
