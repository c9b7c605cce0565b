"""The position map: the label of each key, in two tables of buckets (d-left hashing).

A key goes to the emptier of its two buckets, to the first table's if they are equal (Vöcking, "How asymmetry
helps load balancing", 2003). Buckets are bits of the permuted key, and the other bits identify the key
exactly.
"""

from collections import defaultdict
from dataclasses import dataclass

from hw.oram.config import OramConfig


@dataclass(slots=True)
class MapEntry:
    """The entry of a key."""

    permuted: int  #: u, the permuted key.
    records: tuple[int, ...]  #: The record of each of its labels.
    drawn: int  #: Number of the operation that drew them: for audits, not in the engine.


class PositionMap:
    """Entries by permuted key; ``tables[t][bucket]`` has a slot for each entry, None if free."""

    def __init__(self, config: OramConfig) -> None:
        self.config = config
        self.tables: tuple[defaultdict[int, list[MapEntry | None]], ...] = (
            defaultdict(self._empty),
            defaultdict(self._empty),
        )
        self.entries: dict[int, MapEntry] = {}

    def _empty(self) -> list[MapEntry | None]:
        return [None] * self.config.bucket_entries

    def __len__(self) -> int:
        return len(self.entries)

    def buckets(self, permuted: int) -> tuple[int, int]:
        """Return the bucket of a key in each table."""
        mask = self.config.buckets - 1
        return permuted & mask, permuted >> self.config.bucket_bits & mask

    def tag(self, table: int, permuted: int) -> int:
        """Return the bits of a permuted key without its bucket's number in ``table``."""
        width = self.config.bucket_bits
        if table == 0:
            return permuted >> width
        return permuted >> 2 * width << width | permuted & (1 << width) - 1

    def permuted(self, table: int, bucket: int, tag: int) -> int:
        """Return the permuted key that has ``tag`` in ``bucket`` of ``table``."""
        width = self.config.bucket_bits
        if table == 0:
            return tag << width | bucket
        return (tag >> width << width | bucket) << width | tag & (1 << width) - 1

    def find(self, permuted: int) -> MapEntry | None:
        """Look a key up."""
        return self.entries.get(permuted)

    def insert(self, entry: MapEntry) -> bool:
        """Insert a new key into the lowest free slot; False if both buckets are full."""
        slots = [
            table[bucket] for table, bucket in zip(self.tables, self.buckets(entry.permuted), strict=True)
        ]
        emptier = max(slots, key=lambda bucket: bucket.count(None))  # the first of equals
        if None not in emptier:
            return False
        emptier[emptier.index(None)] = entry
        self.entries[entry.permuted] = entry
        return True

    def remove(self, entry: MapEntry) -> None:
        """Free a key's slot."""
        del self.entries[entry.permuted]
        for table, bucket in zip(self.tables, self.buckets(entry.permuted), strict=True):
            for slot, other in enumerate(table[bucket]):
                if other is entry:
                    table[bucket][slot] = None
                    return
