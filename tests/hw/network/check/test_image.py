"""The check of images, beside the rows that each command reads, on images in any order of records."""

import random

import pytest

from hw.network.check.clocks import OrderError
from hw.network.check.image import check_image
from hw.network.program.arrival import image_order
from hw.network.program.image import encode
from hw.network.program.lower import program_of
from hw.network.program.order import order
from hw.network.program.records import (
    BLOCK_RAMS,
    FIRST_RAM,
    HEADER,
    RECORD_BYTES,
    SLOTS,
    TABLE_BITS,
    TableNumber,
)
from hw.network.program.row_places import RowPlaces
from tests.hw.network.model.test_overlap import CONFIG
from tests.hw.network.program.example import CONFIG as EXAMPLE_CONFIG
from tests.hw.network.program.example import example
from tests.sim.golden.test_program_tokens import compiled, small

#: Tables whose records refer to rows.
REFERRING = (TableNumber.WEIGHTS, TableNumber.DRAIN, TableNumber.LOOPS)


@pytest.fixture(scope="module", params=["tokens", "example"])
def made(request):
    """Return a program, its configuration, and its records with the header alone in the opening."""
    if request.param == "tokens":
        program, config = order(program_of(compiled(small("gelu"), (40,))), CONFIG), CONFIG
    else:
        program, config = example(), EXAMPLE_CONFIG
    image = encode(program, config)
    records = [image[at : at + RECORD_BYTES] for at in range(0, len(image), RECORD_BYTES)]
    records[0] = with_opening(image, 1)
    found = image_order(program, lanes=config.lanes)
    return program, config, records, found.records


def with_opening(image, count):
    """Return an image's header with another number of records in the opening."""
    field = HEADER["opening"]
    bits = int.from_bytes(image[:RECORD_BYTES], "little")
    bits &= ~((1 << field.width) - 1 << TABLE_BITS + field.offset)
    return (bits | count << TABLE_BITS + field.offset).to_bytes(RECORD_BYTES, "little")


def expected(program, config, listed):
    """Tell by the commands themselves whether no row comes behind a record that refers to it."""
    places = RowPlaces(program, lanes=config.lanes)
    own = {core: [s.command for s in program.steps if s.core == core] for core in (0, 1)}
    first = {}
    for at, each in enumerate(listed):
        if each.table in REFERRING:
            command = own[int(each.table == TableNumber.LOOPS)][each.number]
            for ram, rows in places.read(command).items():
                if (ram == TableNumber.TAPS) != (each.table == TableNumber.WEIGHTS) and each.table != 8:
                    continue
                for row in rows:
                    first.setdefault((ram, row), at)
    firsts = {TableNumber.CHANNELS: places.channel_firsts}
    for at, each in enumerate(listed):
        if each.table < FIRST_RAM:
            continue
        begin = firsts[each.table][each.number] if each.table in firsts else SLOTS * each.number
        rows = SLOTS if each.table in BLOCK_RAMS else each.rows
        if any(first.get((each.table, row), at) < at for row in range(begin, begin + rows)):
            return False
    return True


def test_images_are_accepted(made):
    program, config, records, listed = made
    check_image(b"".join(records), config)
    assert expected(program, config, listed)


def test_moved_records_are_refused_if_a_command_refers_to_them_before(made):
    program, config, records, listed = made
    rng, verdicts = random.Random(0), []
    rams = [n for n, each in enumerate(listed) if each.table >= FIRST_RAM]
    for _ in range(60):
        numbers = list(range(len(records)))
        for _ in range(rng.choice([1, 1, 2])):
            place = rng.choice(rams) if rng.random() < 0.7 else rng.randrange(1, len(numbers))
            numbers.insert(rng.randrange(1, len(numbers)), numbers.pop(place))
        try:
            check_image(b"".join(records[n] for n in numbers), config)
            verdicts.append(True)
        except OrderError:
            verdicts.append(False)
        assert verdicts[-1] == expected(program, config, [listed[n] for n in numbers])
    assert 5 < sum(verdicts) < 55
    moved = next(n for n in rams if listed[n].table == TableNumber.TAPS)
    numbers = [n for n in range(len(records)) if n != moved]
    with pytest.raises(OrderError, match=r"rows of TAPS behind record \d+, which refers to them"):
        check_image(b"".join(records[n] for n in (*numbers, moved)), config)
    # Rows of the opening are there before any command.
    changed = [records[n] for n in (*numbers, moved)]
    changed[0] = with_opening(changed[0], len(records))
    check_image(b"".join(changed), config)
    changed[0] = with_opening(changed[0], len(records) - 1)
    with pytest.raises(OrderError):
        check_image(b"".join(changed), config)
