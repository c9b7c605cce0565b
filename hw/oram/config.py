"""Shape of the oblivious map, and the sizes that follow from it."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

from hw.errors import InputError, check_field_types, check_one_of, check_power_of_two, check_range
from hw.oram.sizing.lists import LIFE_FAILURE, ListShape, overflow_failure
from hw.oram.sizing.queues import PositionSizes, position_sizes
from hw.oram.sizing.records import RecordSizes, RecordTraffic

#: Bytes of a beat of the host ports: PCIe's slave bridge has 512 bits.
BEAT_BYTES = 64
#: Bytes of the longest burst; none crosses a multiple of as many.
BURST_BYTES = 1024
#: Bytes of an AES block, and of a GCM tag as it is stored.
BLOCK_BYTES = 16
#: Bytes of a bucket of the position map, and of the bitmap of entries in use at its front.
BUCKET_BYTES = 128
BUCKET_BITMAP_BYTES = 2
#: Bytes before the keys of a record.
RECORD_HEADER_BYTES = 32
#: Bits of a page's version: at one page every 4 cycles of 250 MHz they last 52 days on a single page.
VERSION_BITS = 48
#: AES blocks for the permutation of an operation's key; each draw takes one more.
PERMUTATION_ROUNDS = 4
#: Minimum cycles of an operation in the position map, and of a touch in the stage.
_POSITION_CYCLES, _ITEM_CYCLES = 4, 4
#: Maximum cycles from a stage's decision to its last write on the bus, beats of page, record and value not
#: counted.
_WRITE_EXTRA = 50
#: Maximum cycles from a command's acceptance to its issue outside of HBM, and maximum intervals of its waits.
#: `hw.oram.movers.timing.PathTiming` computes the exact latency.
_ACCEPT_EXTRA, _ACCEPT_TURNS = 128, 6
#: Slots of a record that ``list_slots: 0`` selects from: with values of 8 bytes they fill whole beats.
_AUTOMATIC_SLOTS = range(14, 63, 4)

#: Powers of two, with the least and the most; ``inflight`` may be 0.
_POWERS_OF_TWO = (
    ("items_per_label", 2, 32),
    ("bin_split", 1, 16),
    ("position_ports", 2, 16),
    ("record_ports", 1, 16),
    ("inflight", 4, 256),
    ("overflow_entries", 4, 256),
)
#: Fields of the configuration with few legal values.
_CHOICES: dict[str, tuple[object, ...]] = {
    "key_bits": (32, 64),
    "touch": ("one", "both"),
    "pad": ("skip", "always"),
    "mac_bits": (64, 96, 128),
    "aes_lanes": (1, 2, 4),
}


@dataclass(frozen=True, kw_only=True)
class OramConfig:
    """Shape of the map. Keys of the ciphers and addresses are arguments of a launch."""

    key_bits: Literal[32, 64] = 64  #: Bits of a key: 32 or 64.
    value_bytes: int = 8  #: V, bytes of a value: 8, 16, 32, or a multiple of 64 up to 512.
    log_n: int = 20  #: The map holds at most N = 2^log_n keys: 8 to 30.
    #: C, keys a label on average when the map is full: a power of two from 2 to 32. M = N / C labels.
    items_per_label: int = 8
    slots: int = 12  #: Z, keys in a page of host memory: 4 to 62.
    #: E, keys in the list of a page, or in an HBM bin: 4 to 62. 0 selects the least of 14, 18, 22 ... for
    #: which the overflow entries suffice.
    list_slots: int = 0
    bin_split: int = 4  #: S, bins of a label in HBM: a power of two from 1 to 16.
    alpha: float = 0.2  #: Share of the labels in HBM: 0 to less than 1; rounded to whole labels.
    #: "one": a key has one label, and an operation touches its page. "both": a key has two labels, as in
    #: BOLT. Both pages are touched, and the item goes to the one with fewer items.
    touch: Literal["one", "both"] = "one"
    #: "skip": a label in HBM touches no page of the host. "always": it touches a page drawn at random.
    pad: Literal["skip", "always"] = "skip"
    mac_bits: Literal[64, 96, 128] = 128  #: Bits of a page's tag that are compared: 64, 96 or 128.
    aes_lanes: int = 4  #: AES-128 pipelines that open pages, and the same number that seal them: 1, 2 or 4.
    #: HBM ports of the two tables of the position map together: a power of two from 2 to 16.
    position_ports: int = 8
    record_ports: int = 16  #: HBM ports of the records: a power of two from 1 to 16.
    #: Operations between issue and admission: a power of two from 4 to 256. 0 selects the least that does not
    #: limit the rate.
    inflight: int = 0
    overflow_entries: int = 128  #: Items on chip whose list is full: a power of two from 4 to 256.
    #: Minimum cycles between operations, or 0 for the least that the engine supports.
    interval_cycles: int = 0
    #: Cycles for an operation's reads of the position map in HBM: 16 to 4,096. 0 selects the cycles that
    #: suffice for every sequence of keys (`hw.oram.sizing.queues`).
    position_cycles: int = 0
    #: Cycles for an operation's reads of records in HBM, from its issue: 16 to 4,096. 0 selects the cycles
    #: that suffice for every sequence of keys (`hw.oram.sizing.records`).
    touch_cycles: int = 0
    settle_cycles: int = 0  #: Cycles for an operation's writes to HBM: as for ``touch_cycles``.

    def __post_init__(self) -> None:
        check_field_types(self)
        value = self.value_bytes
        if value not in (8, 16, 32) and not (64 <= value <= 512 and value % 64 == 0):
            raise InputError("value_bytes", value, "8, 16, 32 or a multiple of 64 up to 512")
        check_range("log_n", self.log_n, 8, 30)
        check_range("slots", self.slots, 4, 62)
        if self.list_slots and not 4 <= self.list_slots <= 62:
            raise InputError("list_slots", self.list_slots, "0, or from 4 to 62")
        for name, least, most in _POWERS_OF_TWO:
            if getattr(self, name) or name != "inflight":
                check_power_of_two(name, getattr(self, name), least, most)
        if not (isinstance(self.alpha, (int, float)) and 0 <= self.alpha < 1 and self.host_pages > 0):
            raise InputError("alpha", self.alpha, "from 0 to less than 1, with a label left for the host")
        for name, choices in _CHOICES.items():
            check_one_of(name, getattr(self, name), choices)
        for name in ("position_cycles", "touch_cycles", "settle_cycles"):
            if getattr(self, name):
                check_range(name, getattr(self, name), 16, 4096)
        if 2 * self.bucket_bits > self.key_bits:
            most = self.key_bits // 2 + self.log_n - self.bucket_bits
            raise InputError("log_n", self.log_n, f"up to {most} for keys of {self.key_bits} bits")
        if self.tag_bits > self._tag_room_bits:
            legal = f"large enough for entries of {self._tag_room_bits} bits, which {self.tag_bits} are not"
            raise InputError("log_n", self.log_n, legal)
        if self.interval_cycles and not self.least_interval_cycles <= self.interval_cycles <= 4096:
            legal = f"0, or from {self.least_interval_cycles} to 4096"
            raise InputError("interval_cycles", self.interval_cycles, legal)
        enough = {"position_ports": self.position.write_back, "record_ports": self.record_sizes.touch_cycles}
        for name in (name for name, sizes in enough.items() if not sizes):
            legal = f"more for so many keys, or interval_cycles larger than {self.interval}"
            raise InputError(name, getattr(self, name), legal)

    @property
    def keys(self) -> int:
        """N, most keys in the map."""
        return 1 << self.log_n

    @property
    def labels(self) -> int:
        """M, a power of two."""
        return self.keys // self.items_per_label

    @property
    def hbm_labels(self) -> int:
        """K: labels below K lie in HBM."""
        return round(self.alpha * self.labels)

    @property
    def host_pages(self) -> int:
        """H, labels that are pages in host memory."""
        return self.labels - self.hbm_labels

    @cached_property
    def record_slots(self) -> int:
        """E, slots of a record.

        Raises `InputError` when ``list_slots`` is 0, and the overflow entries suffice with no legal number.
        """
        if self.list_slots:
            return self.list_slots
        for slots in _AUTOMATIC_SLOTS:
            if overflow_failure(replace(self, list_slots=slots).list_shape) < LIFE_FAILURE:
                return slots
        raise InputError("overflow_entries", self.overflow_entries, "more, whatever list_slots is")

    @property
    def list_shape(self) -> ListShape:
        """Numbers on which the failure of the overflow depends; see `hw.oram.sizing.lists`."""
        return ListShape(**{field.name: getattr(self, field.name) for field in fields(ListShape)})

    @cached_property
    def record_sizes(self) -> RecordSizes:
        """Deadlines of the records in HBM, and the sizes of their queues."""
        traffic = RecordTraffic(**{field.name: getattr(self, field.name) for field in fields(RecordTraffic)})
        return RecordSizes(
            traffic,
            touch_cycles=self.touch_cycles,
            settle_cycles=self.settle_cycles,
            inflight=self.inflight,
        )

    @property
    def records(self) -> int:
        """Lists of the pages, then HBM bins."""
        return self.host_pages + self.hbm_labels * self.bin_split

    @property
    def record_index_bits(self) -> int:
        """Bits of the number of a record."""
        return (self.records - 1).bit_length()

    @property
    def label_count(self) -> int:
        """Labels a key has: 1, or 2 with two choices."""
        return 2 if self.touch == "both" else 1

    @property
    def items(self) -> int:
        """Touches of an operation: one record for each label, and with padding one page more."""
        return self.label_count * (2 if self.pad == "always" and self.hbm_labels else 1)

    @property
    def bucket_keys(self) -> int:
        """Keys in a bucket on average when the map is full: too few for a key to find both buckets full."""
        return 4 if self.touch == "both" else 8

    @property
    def buckets(self) -> int:
        """Buckets of each of the two tables of the position map: a power of two."""
        return self.keys // (2 * self.bucket_keys)

    @property
    def bucket_bits(self) -> int:
        """w, bits of the number of a bucket."""
        return self.buckets.bit_length() - 1

    @property
    def entry_bytes(self) -> int:
        """Bytes of an entry of the position map: the tag, and the records."""
        return 12 if self.touch == "both" else 9

    @property
    def bucket_entries(self) -> int:
        """Entries of a bucket."""
        return (BUCKET_BYTES - BUCKET_BITMAP_BYTES) // self.entry_bytes

    @property
    def tag_bits(self) -> int:
        """Bits of the permuted key in an entry: all but the bucket's number."""
        return self.key_bits - self.bucket_bits

    @property
    def _tag_room_bits(self) -> int:
        return 8 * self.entry_bytes - self.label_count * self.record_index_bits

    def _slots_bytes(self, before: int, slots: int) -> tuple[int, int]:
        """Return the offset of the values behind ``before`` bytes and the keys, and their end, in whole
        beats.
        """
        unit = min(self.value_bytes, BEAT_BYTES)
        values = -(-(before + 8 * slots) // unit) * unit
        return values, -(-(values + slots * self.value_bytes) // BEAT_BYTES) * BEAT_BYTES

    @property
    def page_values_offset(self) -> int:
        """Byte of a page at which the first value begins."""
        return self._slots_bytes(BLOCK_BYTES + 8, self.slots)[0]

    @cached_property
    def page_bytes(self) -> int:
        """P, bytes of a page: tag, bitmap of slots, keys, values."""
        return self._slots_bytes(BLOCK_BYTES + 8, self.slots)[1]

    @property
    def record_values_offset(self) -> int:
        """Byte of a record at which the first value begins."""
        return self._slots_bytes(RECORD_HEADER_BYTES, self.record_slots)[0]

    @property
    def record_bytes(self) -> int:
        """Bytes of a record in HBM: header, keys, values."""
        return self._slots_bytes(RECORD_HEADER_BYTES, self.record_slots)[1]

    @property
    def page_beats(self) -> int:
        """Beats of a page."""
        return self.page_bytes // BEAT_BYTES

    @property
    def page_beat_cycles(self) -> int:
        """Cycles from one beat of a page to the next: each AES pipeline makes 16 bytes a cycle."""
        return BEAT_BYTES // (BLOCK_BYTES * self.aes_lanes)

    @property
    def page_cycles(self) -> int:
        """Cycles of the beats of a page."""
        return self.page_beats * self.page_beat_cycles

    @property
    def record_beats(self) -> int:
        """Beats of a record."""
        return self.record_bytes // BEAT_BYTES

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of a value on chip: at most a beat."""
        return min(self.value_bytes, BEAT_BYTES)

    @property
    def value_rows(self) -> int:
        """Rows of a value."""
        return self.value_bytes // self.row_bytes

    @cached_property
    def command_bytes(self) -> int:
        """R, bytes of a sealed command, and of a sealed response."""
        value = -(-self.value_bytes // BLOCK_BYTES) * BLOCK_BYTES
        return -(-(3 * BLOCK_BYTES + value) // BEAT_BYTES) * BEAT_BYTES

    @cached_property
    def ring_group(self) -> int:
        """G, most commands in a request and responses in a write. It is a power of two, at most a burst, and
        leaves room for four groups.
        """
        most = min(BURST_BYTES // self.command_bytes, self.issued // 2)
        return 1 << (most.bit_length() - 1)

    @property
    def draws(self) -> int:
        """AES blocks of random bits that every operation draws."""
        return self.label_count

    @property
    def front_lanes(self) -> int:
        """AES pipelines that permute keys and draw labels: two for intervals shorter than the blocks."""
        return 1 if self.interval >= PERMUTATION_ROUNDS + self.draws else 2

    @cached_property
    def least_interval_cycles(self) -> int:
        """Minimum cycles of an operation: those of its slowest part, multiplied by its touches."""
        least = max(
            self.label_count * self.page_cycles,
            self.items * max(self.record_beats, _ITEM_CYCLES),
            self.command_bytes // BLOCK_BYTES,
            -(-(PERMUTATION_ROUNDS + self.draws) // 2),
            _POSITION_CYCLES,
        )
        return -(-least // self.items) * self.items

    @property
    def interval(self) -> int:
        """Cycles between operations at least."""
        return self.interval_cycles or self.least_interval_cycles

    @cached_property
    def position(self) -> PositionSizes:
        """Deadlines of the position map in HBM, and the sizes of its log and queues."""
        return position_sizes(
            ports=self.position_ports // 2,
            buckets=self.buckets,
            interval=self.interval,
            read_cycles=self.position_cycles,
            write_cycles=self.settle_cycles,
            window=self.window,
        )

    @property
    def issued(self) -> int:
        """Maximum number of operations between their issue and their admission."""
        return self.record_sizes.issued

    @property
    def item_cycles(self) -> int:
        """Minimum cycles from a touch of an operation to its next."""
        return -(-self.interval // self.items)

    @cached_property
    def accepted(self) -> int:
        """Maximum number of operations between acceptance and the issue of their first touch."""
        return -(-(self.position.read_cycles + _ACCEPT_EXTRA) // self.interval) + _ACCEPT_TURNS

    @property
    def command_records(self) -> int:
        """Maximum number of commands requested and not accepted."""
        return 2 * self.issued

    @property
    def response_records(self) -> int:
        """Maximum number of responses between the admission of their operation and the end of their write."""
        return 2 * self.issued

    @property
    def read_pages(self) -> int:
        """Maximum number of pages between the issue of their read and their admission."""
        return self.issued * self.label_count

    @property
    def write_pages(self) -> int:
        """Maximum number of pages between their admission and the last beat of their write."""
        return self.read_pages

    @property
    def scoreboard_pages(self) -> int:
        """Maximum number of pages between the issue of their read and the end of their write."""
        return 2 * self.issued * self.label_count

    @property
    def unsettled(self) -> int:
        """Maximum number of operations whose writes to HBM are in flight."""
        passing = 2 * self.page_cycles + self.record_beats
        values = 2 * -(-self.value_bytes // RECORD_HEADER_BYTES)
        return -(-(self.record_sizes.settle_cycles + _WRITE_EXTRA + passing + values) // self.interval)

    @property
    def window(self) -> int:
        """W, operations whose writes a record's read may miss: an item stays in its list as long."""
        return self.issued + self.unsettled

    @property
    def operation_bits(self) -> int:
        """Bits of an operation's number: it counts those from their command to the end of the window."""
        ahead = self.accepted + 2 * self.issued
        return (ahead + self.window).bit_length()
