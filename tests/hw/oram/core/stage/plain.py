"""What the stage does, one operation after the other, on bytes; written from the specification."""

import random
from dataclasses import dataclass, field

from hw.oram.core.layouts import Code, Status


@dataclass
class Touch:
    """One touch: what the stage is given, and what it must give back."""

    fields: dict
    page_in: bytes = b""
    record_in: bytes = b""
    headers_in: list = field(default_factory=list)
    given: bytes = b""
    page_out: bytes = b""
    seal: tuple | None = None
    writes: list = field(default_factory=list)  #: (record, offset, bytes) in order.
    response: tuple | None = None
    retried: tuple | None = None  #: Record and slot that an item of the overflow store went into.


class Bytes:
    """Bitmap, keys and values of a page or record."""

    def __init__(self, config, content, bitmap_at, values_at, slots):
        self.config, self.content, self.slots = config, content, slots
        self.bitmap_at, self.values_at = bitmap_at, values_at

    @property
    def bitmap(self):
        return int.from_bytes(self.content[self.bitmap_at : self.bitmap_at + 8], "little")

    def mark(self, slot, used):
        bits = self.bitmap & ~(1 << slot) | used << slot
        self.content[self.bitmap_at : self.bitmap_at + 8] = bits.to_bytes(8, "little")
        if not used and self.is_page:
            self.content[self.key_place(slot)] = bytes(8)
            self.content[self.value_place(slot)] = bytes(self.config.value_bytes)

    def used(self, slot):
        return self.bitmap >> slot & 1

    def key_place(self, slot):
        return slice(self.keys_at + 8 * slot, self.keys_at + 8 * slot + 8)

    @property
    def is_page(self):
        return self.bitmap_at != 8

    @property
    def keys_at(self):
        return 24 if self.is_page else 32

    def value_place(self, slot):
        size = self.config.value_bytes
        return slice(self.values_at + size * slot, self.values_at + size * (slot + 1))

    def key(self, slot):
        return int.from_bytes(self.content[self.key_place(slot)], "little")

    def value(self, slot):
        return bytes(self.content[self.value_place(slot)])

    def put(self, slot, key, value):
        self.content[self.key_place(slot)] = key.to_bytes(8, "little")
        self.content[self.value_place(slot)] = value
        self.mark(slot, 1)

    def find(self, key):
        return next((slot for slot in range(self.slots) if self.used(slot) and self.key(slot) == key), None)

    def lowest_free(self):
        return next((slot for slot in range(self.slots) if not self.used(slot)), None)


class PlainStage:
    """State of pages, records and overflow store; `operate` draws an operation and does it.

    HBM shows the writes of the last `OramConfig.window` operations or not, as the random numbers have it.
    """

    def __init__(self, config, seed, *, keys, records, weights):
        self.config, self.rng = config, random.Random(seed)
        self.keys, self.weights, self.number = keys, weights, 0
        rng = self.rng
        self.pages = {}
        self.records, self.pending, self.filled = {}, {}, {}
        self.choices = records
        for record in records:
            content = bytearray(rng.randbytes(config.record_bytes))
            content[:24] = (1).to_bytes(8, "little") + bytes(16)
            self.records[record] = Bytes(config, content, 8, config.record_values_offset, config.list_slots)
            self.shown = getattr(self, "shown", {}) | {record: bytearray(content)}
            self.pending[record], self.filled[record] = [], [-(10**9)] * config.list_slots
            if record < config.host_pages:
                page = bytearray(rng.randbytes(config.page_bytes))
                page[16:24] = bytes(8)
                self.pages[record] = Bytes(config, page, 16, config.page_values_offset, config.slots)
        self.overflow = [
            None
        ] * config.overflow_entries  # [record, key, value, moved into slot, by operation]
        self.map, self.last = {}, keys[0]
        self.seen = dict.fromkeys(("flush", "retry", "store", "page", "list", "log", "entry", "moved"), 0)

    def record_in_hbm(self, record):
        """Give the record as it is read: recent writes are there or not."""
        pending = self.pending[record]
        while pending and pending[0][0] <= self.number - self.config.window:
            _, offset, new = pending.pop(0)
            self.shown[record][offset : offset + len(new)] = new
        read = bytearray(self.shown[record])
        for _, offset, new in pending:
            if self.rng.random() < 0.5:
                read[offset : offset + len(new)] = new
        return read

    def write(self, touch, record, offset, new):
        touch.writes.append((record, offset, bytes(new)))
        self.pending[record].append((self.number, offset, bytes(new)))

    def draw(self):
        """Give a fresh record for each label."""
        return [self.rng.choice(self.choices) for _ in range(self.config.label_count)]

    def operate(self):
        """Give the touches of the next operation."""
        config, rng, number = self.config, self.rng, self.number
        code = rng.choices(list(Code), self.weights)[0]
        key = rng.choice(self.keys[:3] if rng.random() < 0.3 else self.keys)
        if rng.random() < 0.15:
            key = self.last
        self.last = key
        given, fresh, miss = rng.randbytes(config.value_bytes), self.draw(), self.draw()
        hit = key in self.map and code in (Code.GET, Code.PUT, Code.DELETE)
        if hit:
            status = Status.HIT
        elif code in (Code.PUT, Code.LOAD):
            full = rng.random() < 0.1
            status = Status.DUPLICATE if key in self.map else Status.FULL if full else Status.INSERTED
        else:
            status = Status.MISS
        keep = status == Status.INSERTED or (hit and code != Code.DELETE)
        labels = self.map[key] if hit else miss
        if rng.random() < 0.2:
            fresh = list(labels)
        if hit and code == Code.DELETE:
            del self.map[key]
        if keep:
            self.map[key] = fresh
        places = []
        for record in labels:
            host = record < config.host_pages
            own = (True, record) if host else (False, record if hit else None)
            if config.items == config.label_count:
                places.append(own)
            elif host:
                places += [(False, None), own]
            else:
                places += [own, (True, rng.choice(sorted(self.pages)))]
        self.undone = touches = []
        before, found = bytes(config.value_bytes), False
        for index, (with_page, record) in enumerate(places):
            fields = {
                "operation": number % (1 << config.operation_bits), "code": code, "key": key,
                "status": status, "first": index == 0, "last": index == len(places) - 1, "keep": keep,
                "page_valid": with_page, "record_valid": record is not None, "record": record or 0,
                "fresh": fresh,
            }  # fmt: skip
            touch = Touch(fields)
            touches.append(touch)
            if record is not None:
                value = self.touch(touch, with_page, record, key if hit and not found else None)
                if value is not None:
                    before, found = value, True
                if touch.retried and not fields["last"]:
                    self.write_item(touch, *touch.retried)
        assert found == hit
        last = touches[-1]
        last.given = given
        last.response = (fields["operation"], status, key, before)
        if keep:
            last.headers_in = [bytes(self.record_in_hbm(record)[:32]) for record in fresh]
            self.append(last, fresh, key, before if code == Code.GET else given)
        if last.retried:
            self.write_item(last, *last.retried)
        self.expire()
        self.number += 1
        return touches

    def touch(self, touch, with_page, record, key):
        """Do a touch; give the value of ``key`` if it was here."""
        config, items = self.config, self.records[record]
        content = self.record_in_hbm(record)
        content[:8] = items.content[:8]  # no other operation touches the page before it has settled
        touch.record_in = bytes(content)
        own = None
        page = self.pages[record] if with_page else None
        visible = [self.filled[record][slot] < self.number - config.window for slot in range(items.slots)]
        if page is not None:
            touch.page_in = bytes(page.content)
            if key is not None and (slot := page.find(key)) is not None:
                own = page.value(slot)
                page.mark(slot, 0)
                self.seen["page"] += 1
        if key is not None and (slot := items.find(key)) is not None:
            own = items.value(slot)
            items.mark(slot, 0)
            self.seen["list" if visible[slot] else "log"] += 1
        for at, entry in enumerate(self.overflow):
            if entry and key is not None and entry[:2] == [record, key]:
                self.seen["moved" if entry[3] is not None else "entry"] += 1
                own, self.overflow[at] = entry[2], None
        if page is not None:
            for slot in range(items.slots):
                if items.used(slot) and visible[slot] and (free := page.lowest_free()) is not None:
                    page.put(free, items.key(slot), items.value(slot))
                    items.mark(slot, 0)
                    self.seen["flush"] += 1
        moved = None
        waiting = [at for at, entry in enumerate(self.overflow) if entry and entry[3] is None]
        for at in waiting:
            entry = self.overflow[at]
            if entry[0] == record:
                if (slot := items.lowest_free()) is not None:
                    items.put(slot, *entry[1:3])
                    self.filled[record][slot] = self.number
                    entry[3:] = [slot, self.number]
                    moved = slot
                    self.seen["retry"] += 1
                break
        if page is not None:
            version = int.from_bytes(items.content[:8], "little") + 1
            items.content[:8] = version.to_bytes(8, "little")
            items.content[16:24] = page.bitmap.bit_count().to_bytes(8, "little")
            self.write(touch, record, 0, items.content[:24])
            touch.page_out, touch.seal = bytes(page.content), (record, version)
        else:
            self.write(touch, record, 8, items.content[8:16])
        if moved is not None:
            touch.retried = (record, moved)
        return own

    def append(self, touch, fresh, key, value):
        """Put the item into the fresh record with fewer items."""

        def load(record):
            page = self.pages[record].bitmap.bit_count() if record in self.pages else 0
            return page + self.records[record].bitmap.bit_count()

        record = min(fresh, key=load)
        items = self.records[record]
        slot = items.lowest_free()
        if slot is not None:
            items.put(slot, key, value)
            self.filled[record][slot] = self.number
            self.write(touch, record, 8, items.content[8:16])
            self.write_item(touch, record, slot)
        else:
            self.seen["store"] += 1
            if None not in self.overflow:
                raise OverflowError
            at = self.overflow.index(None)
            self.overflow[at] = [record, key, value, None, None]

    def write_item(self, touch, record, slot):
        items = self.records[record]
        for place in (items.key_place(slot), items.value_place(slot)):
            for start in range(place.start, place.stop, 32):
                stop = min(start + 32, place.stop)
                self.write(touch, record, start, items.content[start:stop])

    def expire(self):
        for at, entry in enumerate(self.overflow):
            if entry and entry[4] is not None and entry[4] <= self.number - self.config.window:
                self.overflow[at] = None
