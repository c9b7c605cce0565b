"""The golden map on few records, and the inputs and expected outputs of the stage for each of its touches."""

import random
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from hw.oram.config import BLOCK_BYTES, RECORD_HEADER_BYTES
from hw.oram.core.layouts import Code, Status
from hw.oram.core.stage.schedule import KEY_BYTES
from sim.golden.oram.image import page_contents, record_images
from sim.golden.oram.map import Command, ObliviousMap


@dataclass
class Touch:
    """One touch: the stage's inputs and its expected outputs."""

    fields: dict
    given: bytes
    page_in: bytes = b""
    record_in: bytes = b""
    headers_in: list = field(default_factory=list)
    page_out: bytes = b""
    seal: tuple | None = None
    writes: list = field(default_factory=list)  #: (record, offset, bytes) in order.
    response: tuple | None = None
    moved: tuple | None = None  #: Record and slot that an overflow item moved into.


class PlayedMap(ObliviousMap):
    """A map that sometimes finds no room for a key. Its draws are given, or of few records.

    HBM shows the writes of the last `OramConfig.window` operations or not, at random.

    Members
    -------
    keys, no_room
        Keys in use, and how often one found no room.
    played
        Touches of the operation, which is the last or ended in an overflow.
    found
        How often an item was found in each place, or took each path.
    """

    def __init__(self, config, seed, *, keys, records, weights):
        super().__init__(config, lambda _: self._words, lambda keys: keys)
        assert config.bin_split == 1, "a draw is of a label"
        self.rng, self._forwards = random.Random(seed), random.Random(f"forwards {seed}")
        self.keys, self._choices, self._weights = keys, records, weights
        self._few_pages = [record for record in records if record < config.host_pages]
        self._last = keys[0]
        insert = self.position.insert
        self.position.insert = lambda entry: self.rng.random() >= self.no_room and insert(entry)
        self.no_room = 0.1
        self._shown, self._pending = {}, defaultdict(list)
        self._kept = {}  # key -> its last operation that kept it
        self.played = []
        places = ("flush", "move", "store", "page", "list", "log", "entry", "moved", "forward")
        self.found = dict.fromkeys(places, 0)

    def draw(self):
        """Return a fresh record for each label."""
        return [self.rng.choice(self._choices) for _ in range(self.config.label_count)]

    def operate(self):
        """Draw the next operation and return its touches."""
        rng = self.rng
        code = rng.choices(list(Code), self._weights)[0]
        key = rng.choice(self.keys[:3] if rng.random() < 0.3 else self.keys)
        if rng.random() < 0.15:
            key = self._last
        self._last = key
        fresh, miss = self.draw(), self.draw()
        if rng.random() < 0.2:
            entry = self.position.find(key)
            fresh = entry.records if entry else miss
        return self.play(code, key, fresh, miss)

    def play(self, code, key, fresh, miss):
        """Return the touches of an operation with these fresh records, and these of a miss."""
        self._words = np.array([*map(self._word, (*fresh, *miss))], np.uint64).reshape(1, -1, 2)
        self.loads = self.rng.choice(self._few_pages)
        self._command = Command(code, key, self.rng.randbytes(self.config.value_bytes))
        self._fresh, self.played = tuple(fresh), []
        (outcome,) = self.run([self._command])
        last = self.played[-1]
        last.response = (last.fields["operation"], outcome.status, outcome.key, outcome.value)
        if last.moved:
            self._write_item(last, *last.moved)
        return self.played

    def _word(self, record):
        """Return a draw of this record, with one of the few pages as a dummy."""
        dummy = -(-(self.rng.choice(self._few_pages) << 32) // self.config.host_pages)
        return (self.label_of(record) << 64) // self.config.labels + dummy

    def _change_position(self, command, code, entry, new):
        self._status = super()._change_position(command, code, entry, new)
        return self._status

    def _touch(self, number, page, record, key):
        config, code = self.config, self._command.code
        last = len(self.played) == config.items - 1
        keep = self._status == Status.INSERTED or (self._status == Status.HIT and code != Code.DELETE)
        age = number - self._kept.get(self._command.key, number)
        if last and keep:
            self._kept[self._command.key] = number
        fields = {
            "operation": number % (1 << config.operation_bits), "code": code, "key": self._command.key,
            "status": self._status, "age": age if age <= config.window else 0,
            "first": not self.played, "last": last, "keep": keep,
            "page_valid": page is not None, "record_valid": record is not None, "record": record or 0,
            "fresh": self._fresh, "forward": 0, "place": 0, "near": 0,
        }  # fmt: skip
        touch = Touch(fields, self._command.value)
        self.played.append(touch)
        if record is None:
            return None
        touch.record_in = self._read(record)
        if page is not None:
            touch.page_in = self._page(page)
            if self.writes[page] and self._forwards.random() < 0.5:
                # An earlier touch is in flight, and HBM may have any version.
                fields["forward"] = 1
                version = 1 + self.writes[page]
                touch.page_in = version.to_bytes(8, "little") + touch.page_in[8:]
                touch.record_in = self._forwards.randbytes(8) + touch.record_in[8:]
                self.found["forward"] += 1
        self._count(number, page, record, key)
        before = list(self.records[record])
        own = super()._touch(number, page, record, key)
        moved = _new_slot(before, self.records[record])
        if page is not None:
            self._write(touch, record, 0, 24)
            tag = touch.page_in[:BLOCK_BYTES]  # unchanged
            touch.page_out = tag + self._page(page)[BLOCK_BYTES:]
            touch.seal = page, 1 + self.writes[page]
        else:
            self._write(touch, record, 8, 16)
        if moved is not None:
            self.found["move"] += 1
            touch.moved = record, moved
            if not last:
                self._write_item(touch, record, moved)
        return own

    def _append(self, number, fresh, item):
        touch = self.played[-1]
        touch.headers_in = [self._read(record)[:RECORD_HEADER_BYTES] for record in fresh]
        before = {record: list(self.records[record]) for record in fresh}
        super()._append(number, fresh, item)
        for record, items in before.items():
            if (slot := _new_slot(items, self.records[record])) is not None:
                self._write(touch, record, 8, 16)
                self._write_item(touch, record, slot)
                return
        self.found["store"] += 1

    def _count(self, number, page, record, key):
        """Count the place of the key, and whether an item moves into the page."""
        slots = self.pages[page] if page is not None else []
        seen = [
            item for item in self.records[record] if item and item.operation < number - self.config.window
        ]
        places = {
            "page": slots,
            "list": seen,
            "log": [item for item in self.records[record] if item not in seen],
            "entry": [entry and entry[1] for entry in self.overflow if entry and entry[0] == record],
        }
        for name, items in places.items():
            self.found[name] += any(item and item.key == key for item in items)
        self.found["moved"] += any(moved[1] == key for moved in self.moved.values())
        self.found["flush"] += bool(None in slots and seen)

    def _page(self, page):
        return bytes(BLOCK_BYTES) + page_contents(self, [page]).tobytes()

    def _image(self, record):
        return record_images(self, [record])[0].tobytes()

    def _read(self, record):
        """Return the record in HBM, with or without recent writes."""
        if record not in self._shown:
            head = self._image(record)[:RECORD_HEADER_BYTES]
            noise = self.rng.randbytes(self.config.record_bytes - len(head))
            self._shown[record] = bytearray(head + noise)
        pending, shown = self._pending[record], self._shown[record]
        while pending and pending[0][0] <= self.count - self.config.window:
            _, offset, new = pending.pop(0)
            shown[offset : offset + len(new)] = new
        read = bytearray(shown)
        for _, offset, new in pending:
            if self.rng.random() < 0.5:
                read[offset : offset + len(new)] = new
        read[:8] = self._image(record)[:8]  # unless it is forwarded
        return bytes(read)

    def _write(self, touch, record, start, stop):
        new = self._image(record)[start:stop]
        touch.writes.append((record, start, new))
        self._pending[record].append((self.count, start, new))

    def _write_item(self, touch, record, slot):
        size, values = self.config.value_bytes, self.config.record_values_offset
        for start, length in (
            (RECORD_HEADER_BYTES + KEY_BYTES * slot, KEY_BYTES),
            (values + size * slot, size),
        ):
            for part in range(start, start + length, 32):
                self._write(touch, record, part, min(part + 32, start + length))


def _new_slot(before, after):
    """Return the slot with a new item."""
    return next((at for at, item in enumerate(after) if item and item is not before[at]), None)
