# amaranth: UnusedElaboratable=no
"""The stage against the golden map, byte by byte and cycle by cycle, with few keys and few records."""

import contextlib
import functools
import random

import pytest
from amaranth.hdl import Cat

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.core.stage.capture import BANKS
from hw.oram.core.stage.schedule import StageSchedule
from hw.oram.core.stage.stage import TOUCHES, Stage
from sim.golden.oram.map import ListOverflowError
from tests.hw.oram.core.stage.played import PlayedMap
from tests.support.gateware.streams import plain, set_all, simulate

BASE = {
    "log_n": 8, "items_per_label": 8, "slots": 5, "list_slots": 4, "bin_split": 1, "inflight": 4,
    "overflow_entries": 32, "settle_cycles": 16,
}  # fmt: skip


@functools.lru_cache(maxsize=2)
def build(**fields):
    config = OramConfig(**fields)
    return config, Stage(config)


def word(beats, at):
    return int.from_bytes(beats[at], "little") if at < len(beats) else 0


def run(config, stage, touches, *, seed, missing=None):
    """Run touches; return sealed beats, seals, responses with their cycles, written beats, and faults."""
    rng = random.Random(f"gaps {seed}")
    cycles, base = {}, 0

    def at(cycle, signal, value):
        cycles.setdefault(cycle, []).append((signal, value))

    starts = []
    for number, touch in enumerate(touches):
        starts.append(base)
        at(base, stage.touch.valid, 1)
        at(base, stage.touch.payload, touch.fields)
        for index in range(len(touch.page_in) // 64):
            cycle = base + index * config.page_beat_cycles
            at(cycle, stage.page.valid, 1)
            at(cycle, stage.page.payload, int.from_bytes(touch.page_in[64 * index :][:64], "little"))
        if touch.fields["last"]:
            size = config.row_bytes
            for row in range(config.value_rows):
                write = {"operation": touch.fields["operation"], "row": row}
                write["data"] = int.from_bytes(touch.given[size * row :][:size], "little")
                at(base + row, stage.command.valid, 1)
                at(base + row, stage.command.payload, write)
        gap = rng.choice([0, 0, *range(1, 20), 40]) if 2 * number > len(touches) else 0
        base += config.item_cycles + gap
    records = [
        touch.record_in[at : at + 64] for touch in touches for at in range(0, len(touch.record_in), 64)
    ]
    headers = [header for touch in touches for header in touch.headers_in]
    end = base + StageSchedule(config).response + 200
    sealed, seals, responses, writes, faults = [], [], [], [], []
    outputs = [stage.sealed, stage.seal, stage.response]
    sampled = Cat(
        stage.record.ready, stage.header.ready, stage.write.valid, *(one.valid for one in outputs),
        stage.overflow, stage.late,
    )  # fmt: skip

    async def bench(ctx):
        record = header = 0
        for cycle in range(end):
            set_all(
                ctx,
                [
                    *((signal, 0) for signal in (stage.touch.valid, stage.page.valid, stage.command.valid)),
                    (stage.record.valid, record < len(records) - 9 * (missing == "records")),
                    (stage.record.payload, word(records, record)),
                    (stage.header.valid, header < len(headers) - 1 * (missing == "headers")),
                    (stage.header.payload, word(headers, header)),
                    (stage.write.ready, missing != "taken"),
                    *cycles.get(cycle, []),
                ],
            )
            bits = ctx.get(sampled)
            record += bits & 1
            header += bits >> 1 & 1
            if bits >> 2 & 1:
                writes.append(plain(ctx.get(stage.write.payload)))
            for place, (output, kept) in enumerate(zip(outputs, (sealed, seals, responses), strict=True)):
                if bits >> 3 + place & 1:
                    kept.append((cycle, plain(ctx.get(output.payload))))
            faults.append(bits >> 6)
            await ctx.tick()
        assert missing or (record, header) == (len(records), len(headers))

    simulate(stage, bench, limit=end + 10)
    return starts, sealed, seals, responses, writes, max(faults)


def beats_of(writes):
    """Cut writes into beats: record, beat, and its bytes by offset."""
    return [
        (record, offset // 32, {(offset + at) % 32: byte for at, byte in enumerate(new)})
        for record, offset, new in writes
    ]


def beat_of(write):
    data, strobe = write["data"].to_bytes(32, "little"), write["strobe"]
    return write["line"], write["beat"], {at: data[at] for at in range(32) if strobe >> at & 1}


def check(config, stage, touches, *, seed):
    """Compare the stage with the expected outputs of touches, content and cycles."""
    starts, sealed, seals, responses, writes, faults = run(config, stage, touches, seed=seed)
    schedule, spacing = StageSchedule(config), config.page_beat_cycles
    pages = [
        (start + schedule.page + index * spacing, int.from_bytes(touch.page_out[64 * index :][:64], "little"))
        for start, touch in zip(starts, touches, strict=True)
        for index in range(len(touch.page_out) // 64)
    ]
    for at, (got, expected) in enumerate(zip(sealed, pages, strict=True)):
        assert got == expected, f"beat {at}"
    assert [(one["page"], one["version"]) for _, one in seals] == [t.seal for t in touches if t.seal]
    expected_rows = []
    for start, touch in zip(starts, touches, strict=True):
        if touch.response:
            operation, status, key, value = touch.response
            for row in range(config.value_rows):
                part = value[config.row_bytes * row :][: config.row_bytes]
                fields = {"first": int(row == 0), "operation": operation, "status": status, "key": key}
                fields["value"] = int.from_bytes(part, "little")
                expected_rows.append((start + schedule.response + row, fields))
    for at, (got, expected) in enumerate(zip(responses, expected_rows, strict=True)):
        assert got == expected, f"row {at}"
    expected_writes = [beat for touch in touches for beat in beats_of(touch.writes)]
    for at, (got, expected) in enumerate(zip(map(beat_of, writes), expected_writes, strict=True)):
        assert got == expected, f"write {at}"
    assert not faults


def model_of(config, seed, *, keys=36, records=6):
    rng = random.Random(f"keys {seed}")
    return PlayedMap(
        config,
        seed,
        keys=[rng.getrandbits(config.key_bits) for _ in range(keys)],
        records=[*range(records - 2), config.host_pages, config.host_pages + 1],
        weights=[1, 8, 8, 3, 1],
    )


#: Fields, and operations in `make test` (0: only in the soak): enough to find an item in a page.
VARIANTS = {
    "both": ({"touch": "both"}, 0),
    "one, padded": ({"pad": "always"}, 0),
    "both, padded": ({"touch": "both", "pad": "always"}, 20),
    "16 bytes, one AES lane": ({"value_bytes": 16, "aes_lanes": 1, "pad": "always"}, 0),
    "32 bytes, long lists": ({"value_bytes": 32, "slots": 16, "list_slots": 16, "touch": "both"}, 0),
    "full pages": ({"slots": 12, "list_slots": 14}, 60),
    "64 bytes": ({"value_bytes": 64}, 0),  # several rows, as for 192
    "128 bytes": ({"value_bytes": 128, "touch": "both", "pad": "always"}, 0),
    "512 bytes": ({"value_bytes": 512, "slots": 4}, 0),
    "192 bytes, padded": ({"value_bytes": 192, "slots": 4, "list_slots": 7, "pad": "always"}, 0),
    "short keys": ({"slots": 4, "list_slots": 5, "key_bits": 32}, 0),
    "keys up to the last beat": ({"slots": 6, "aes_lanes": 2}, 240),
    "long pages": ({"slots": 20, "aes_lanes": 2, "pad": "always"}, 25),
    "one": ({}, 160),  # last: the next tests reuse its simulator
}
RUNS = [
    pytest.param(name, seed, count, marks=[pytest.mark.soak] if seed else [])
    for name, (_, quick) in VARIANTS.items()
    for seed, count in ((0, quick), (1, 300), (2, 300))
    if count
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("name", "seed", "count"), RUNS)
def test_operations(name, seed, count):
    """Back to back, and then with gaps."""
    config, stage = build(**{**BASE, **VARIANTS[name][0]})
    model = model_of(config, f"{name} {seed}")
    check(config, stage, [touch for _ in range(count) for touch in model.operate()], seed=seed)


def test_all_places_are_found():
    """The default's run finds an item in each possible place."""
    fields, count = VARIANTS["one"]
    model = model_of(OramConfig(**{**BASE, **fields}), "one 0")
    for _ in range(count):
        model.operate()
    assert all(model.found.values()), model.found


def test_where_an_item_moved_to_is_forgotten_as_it_leaves():
    """An entry still names the slot that the previous operation took the key from."""
    config, stage = build(**BASE)
    model = model_of(config, "forgotten")
    model.no_room = 0
    record, *keys = config.host_pages, *model.keys[:6]
    waiting, next_ = keys[4:]
    operations = [(Code.PUT, key) for key in keys]  # four fill the list, two wait
    operations += [
        (Code.DELETE, keys[0]),  # the first waiting item moves into its slot
        (Code.GET, waiting),  # the next one moves there, and this one waits again
        (Code.GET, waiting),  # found there, not in the slot
        (Code.GET, next_),
    ]
    operations += [(Code.NOP, 0)] * len(operations)  # a run has gaps in its second half
    touches = [touch for code, key in operations for touch in model.play(code, key, [record], [record])]
    assert [touch.response[1] for touch in touches[6:10]] == [Status.HIT] * 4
    check(config, stage, touches, seed=0)


def test_a_key_is_not_where_it_was():
    """An item moves into the slot that a key leaves; the next operation looks up the key, and HBM may
    still show it.
    """
    config, stage = build(**BASE)
    model = model_of(config, "left")
    model.no_room = 0
    record, elsewhere, keys = config.host_pages, config.host_pages + 1, model.keys[:5]
    operations = [(Code.PUT, key, record) for key in keys]  # four fill the list, one waits
    operations += [(Code.NOP, 0, elsewhere)] * config.window
    operations += [(Code.GET, key, record) for key in keys[:4] for _ in range(2)]
    operations += [(Code.NOP, 0, elsewhere)] * len(operations)  # a run has gaps in its second half
    touches = [touch for code, key, at in operations for touch in model.play(code, key, [record], [at])]
    assert model.found["move"] == 4
    check(config, stage, touches, seed=0)


def test_an_entry_is_free_after_the_window_of_its_move():
    """A window after the move its entry is still taken: an item takes another one, behind an item that
    waits.
    """
    config, stage = build(**BASE, pad="always")
    model = model_of(config, "free")
    model.no_room = 0
    record, elsewhere, keys = config.host_pages, config.host_pages + 1, model.keys[:7]
    operations = [(Code.PUT, key) for key in keys[:6]]  # four fill the list, two wait
    operations += [(Code.DELETE, keys[0])]  # the first of them moves
    operations += [(Code.NOP, 0)] * (config.window - 1)
    operations += [(Code.PUT, keys[6]), (Code.DELETE, keys[1])]  # the second one moves, not this one
    touches = [touch for code, key in operations for touch in model.play(code, key, [record], [elsewhere])]
    assert model.found["store"] == 3
    assert model.found["move"] == 2
    check(config, stage, touches, seed=0)


def test_a_page_takes_what_it_has_room_for():
    """Four items of the list move into a page of five slots; then one of four more, and the others wait."""
    config, stage = build(**BASE)
    model = model_of(config, "room")
    model.no_room = 0
    page, elsewhere = 1, config.host_pages
    touches = []
    for keys in (model.keys[:4], model.keys[4:8]):
        for key in keys:
            touches += model.play(Code.PUT, key, [page], [elsewhere])
        for _ in range(config.window):
            touches += model.play(Code.NOP, 0, [elsewhere], [elsewhere])
        touches += model.play(Code.NOP, 0, [elsewhere], [page])
    assert None not in model.pages[page]
    assert sum(item is not None for item in model.records[page]) == 3
    for key in model.keys[:8]:
        touches += model.play(Code.GET, key, [elsewhere], [elsewhere])
        assert touches[-1].response[1] == Status.HIT
    check(config, stage, touches, seed=0)


def test_overflow_is_a_fault():
    """With four entries, the model finds none free and the stage reports it."""
    config, stage = build(**{**BASE, "overflow_entries": 4})
    model = model_of(config, "overflow", keys=40)
    touches = []
    with contextlib.suppress(ListOverflowError):
        while True:
            touches += model.operate()
    *_, faults = run(config, stage, touches, seed=0)
    assert not faults
    *_, faults = run(config, stage, touches + model.played, seed=0)
    assert faults == 1


@pytest.mark.parametrize("missing", ["records", "headers", "taken"])
def test_what_is_not_there_is_a_fault(missing):
    """A late record or header, and stalled writes."""
    config, stage = build(**BASE)
    model = model_of(config, "late")
    touches = [touch for _ in range(60) for touch in model.operate()]
    *_, faults = run(config, stage, touches, seed=0, missing=missing)
    assert faults == 2


@pytest.mark.parametrize("name", VARIANTS)
def test_schedule_fits(name):
    """Each part is free again at the next touch, and writes leave within the counted time."""
    config = OramConfig(**{**BASE, **VARIANTS[name][0]})
    schedule, spacing = StageSchedule(config), config.item_cycles
    assert schedule.append - schedule.loop < spacing
    assert schedule.recall > 0
    assert schedule.record >= 0
    assert schedule.values + 2 * config.value_rows - schedule.load < (BANKS - 1) * spacing
    assert schedule.values - schedule.append < TOUCHES * spacing
