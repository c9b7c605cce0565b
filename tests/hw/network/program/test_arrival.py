"""The order of an image: commands' records as they are needed, and an opening for the first transfers."""

from dataclasses import replace

import pytest

from hw.network.program.arrival import image_order
from hw.network.program.image import encode, opening_records
from hw.network.program.lower import program_of
from hw.network.program.order import order
from hw.network.program.program import Transfer
from hw.network.program.records import FIRST_RAM, TableNumber
from tests.hw.network.model.test_overlap import CONFIG
from tests.sim.golden.test_program_tokens import compiled, small


@pytest.fixture(scope="module")
def barriers():
    return program_of(compiled(small("gelu"), (40,)))


@pytest.fixture(scope="module")
def program(barriers):
    return order(barriers, CONFIG)


def test_a_program_of_barriers_is_loaded_before_its_first_command(barriers):
    found = image_order(barriers, lanes=CONFIG.lanes)
    assert found.opening == len(found.records)
    tables = [each.table for each in found.records]
    assert tables == sorted(tables)


def test_records_come_as_commands_need_them(program):
    found = image_order(program, lanes=CONFIG.lanes)
    assert found.records[0].table == TableNumber.HEADER
    steps = [each.step for each in found.records]
    assert steps == sorted(steps)
    for number in TableNumber:
        own = [each.number for each in found.records if each.table == number]
        assert sorted(own) == list(range(len(own)))
        if number < FIRST_RAM:
            assert own == sorted(own)
    for step in range(len(program.steps)):
        own = [each.table for each in found.records if each.step == step and each.table != TableNumber.HEADER]
        rams = [table for table in own if table >= FIRST_RAM]
        assert own[: len(rams)] == rams
        assert own.count(TableNumber.STEPS) == 1
        assert own[-1] == TableNumber.STEPS
    # LayerNorms are spread over the network.
    channels = {each.step for each in found.records if each.table == TableNumber.CHANNELS}
    assert len(channels) > 2
    assert opening_records(encode(program, CONFIG)) == found.opening


def test_the_opening_has_the_commands_of_the_first_transfers(program):
    found = image_order(program, lanes=CONFIG.lanes)
    assert found.opening < len(found.records) / 4
    opening = found.records[: found.opening]
    # Two parts of 32 and 8 tokens; each is a sum and its statistics.
    assert [each.wait_reads for each in program.steps[:3]] == [2, 0, 4]
    assert sum(each.table == TableNumber.STEPS for each in opening) == 3
    assert sum(each.table == TableNumber.READS for each in opening) == len(program.reads)
    assert not any(each.table in (TableNumber.CHANNELS, TableNumber.WRITES) for each in opening)


def test_later_transfers_do_not_lengthen_the_opening(program):
    last = program.steps[-1]
    spilled = Transfer(dram_address=0, address=0, words=1, starts=(3, 0, 0))
    more = replace(
        program,
        reads=(*program.reads, spilled),
        steps=(*program.steps[:-1], replace(last, wait_reads=len(program.reads) + 1)),
    )
    before, after = (image_order(each, lanes=CONFIG.lanes) for each in (program, more))
    assert after.opening == before.opening
    steps = [each.step for each in after.records if each.table == TableNumber.READS]
    third = [n for n, step in enumerate(program.steps) if step.core == 0][2]
    assert steps == [0] * len(program.reads) + [third]


def test_a_transfer_that_no_command_waits_for_is_in_the_opening(program):
    unread = replace(program, reads=(*program.reads, replace(program.reads[0], gathered=None, words=1)))
    found = image_order(unread, lanes=CONFIG.lanes)
    assert found.opening == len(found.records)
