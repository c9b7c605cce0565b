"""Buffers in channels, with guards, and what the registers say of them."""

import dataclasses

import numpy as np
import pytest

from examples.vadd.engine import vadd_table
from hw.errors import InputError
from hw.launch import Buffer, Launch
from sim.bench.plan import GUARD_BYTES
from sim.run.layout import linked, place_buffers, register_writes
from sim.run.memories import memory_of_port, memory_parameters, ports_by_memory
from tests.support.boards import small_board

TABLE = vadd_table()
PLACEMENT = {"gmem0": 0, "gmem1": 3, "gmem2": 0}
BOARD = small_board()


def launch(size=1000, **scalars):
    return Launch(
        scalars={"words": 250, **scalars},
        buffers=(
            Buffer(argument="a", data=np.zeros(size, np.uint8), size_bytes=size),
            Buffer(argument="b", data=np.zeros(size, np.uint8), size_bytes=size),
            Buffer(argument="c", data=None, size_bytes=size, output=True),
        ),
    )


def test_every_buffer_lies_in_its_ports_channel_behind_guards():
    a, b, c = place_buffers(launch(), TABLE, PLACEMENT, BOARD)
    channel = BOARD.memory.channel_bytes
    assert (a.address // channel, b.address // channel, c.address // channel) == (0, 3, 0)
    assert c.address - (a.address + a.size_bytes) >= 2 * GUARD_BYTES
    for buffer in (a, b, c):
        assert buffer.address % 4096 == 0
        assert buffer.address % channel >= GUARD_BYTES
        assert (buffer.address + buffer.size_bytes) % channel <= channel - GUARD_BYTES
    assert [buffer.output for buffer in (a, b, c)] == [False, False, True]


def test_a_channel_that_is_too_small_is_refused():
    room = BOARD.memory.channel_bytes - 2 * GUARD_BYTES
    with pytest.raises(
        InputError, match=rf"^bytes of buffer a must be at most {room}, the room left in channel 0"
    ):
        place_buffers(launch(room + 1), TABLE, PLACEMENT, BOARD)


def test_an_empty_buffer_is_refused():
    with pytest.raises(InputError, match=r"^bytes of buffer a must be at least 1"):
        place_buffers(launch(0), TABLE, PLACEMENT, BOARD)


def test_buffers_and_pointers_must_be_the_same():
    with pytest.raises(InputError, match=r"^buffers of the launch must be one a pointer"):
        place_buffers(dataclasses.replace(launch(), buffers=()), TABLE, PLACEMENT, BOARD)


def test_pointers_take_two_words_and_scalars_one():
    given = launch()
    a, b, c = buffers = place_buffers(given, TABLE, PLACEMENT, BOARD)
    moved = (dataclasses.replace(a, address=a.address + (5 << 32)), b, c)
    (words,) = register_writes(given, TABLE, moved)
    assert words == (
        (TABLE.offset("a"), a.address),
        (TABLE.offset("a") + 4, 5),
        (TABLE.offset("b"), b.address),
        (TABLE.offset("b") + 4, 0),
        (TABLE.offset("c"), c.address),
        (TABLE.offset("c") + 4, 0),
        (TABLE.offset("words"), 250),
    )
    (negative,) = register_writes(launch(words=-2), TABLE, buffers)
    assert negative[-1] == (TABLE.offset("words"), 0xFFFFFFFE)


def test_a_further_call_writes_what_changes():
    given = dataclasses.replace(launch(), then=({"words": 3}, {"b": 64}))
    placed = place_buffers(given, TABLE, PLACEMENT, BOARD)
    _, second, third = register_writes(given, TABLE, placed)
    assert second == ((TABLE.offset("words"), 3),)
    assert third == ((TABLE.offset("b"), placed[1].address + 64), (TABLE.offset("b") + 4, 0))
    with pytest.raises(InputError, match=r"^arguments of a further call must be among \['a', "):
        register_writes(dataclasses.replace(given, then=({"d": 1},)), TABLE, placed)


@pytest.mark.parametrize("words", [1 << 32, -(1 << 31) - 1])
def test_a_scalar_wider_than_its_register_is_refused(words):
    given = launch(words=words)
    with pytest.raises(InputError, match=r"^argument words must be a number of 32 bit"):
        register_writes(given, TABLE, place_buffers(given, TABLE, PLACEMENT, BOARD))


def test_scalars_and_table_must_be_the_same():
    given = launch(more=1)
    with pytest.raises(InputError, match=r"^scalars of the launch must be those of the table: \['words'\]"):
        register_writes(given, TABLE, place_buffers(given, TABLE, PLACEMENT, BOARD))


def test_host_ports_need_host_memory():
    assert ports_by_memory(["gmem0", "gmem1"], BOARD) == {"main": ["gmem0", "gmem1"]}
    with pytest.raises(
        InputError, match=r"^board must be one with host memory: the kernel has the port host0"
    ):
        memory_of_port("host0", BOARD)


def test_an_unknown_memory_mode_is_refused():
    with pytest.raises(InputError, match=r"^mode must be"):
        memory_parameters(["gmem0"], {"gmem0": 0}, (), BOARD, mode="slow", seed=0, traces={})


def test_a_null_pointer_has_no_buffer_and_a_zero_register():
    given = dataclasses.replace(launch(), buffers=launch().buffers[1:], nulls=("a",))
    placed = place_buffers(given, TABLE, PLACEMENT, BOARD)
    assert [buffer.argument for buffer in placed] == ["b", "c"]
    (words,) = register_writes(given, TABLE, placed)
    assert words[:2] == ((TABLE.offset("a"), 0), (TABLE.offset("a") + 4, 0))


def test_links_become_addresses():
    whole = launch()
    placed = place_buffers(whole, TABLE, PLACEMENT, BOARD)
    data = np.zeros(40, np.uint8)
    data[8] = 5
    buffer = Buffer(argument="a", data=data, size_bytes=40, links=((8, "c"), (32, "b")))
    words = linked(buffer, placed).view("<u8")
    assert words.tolist() == [0, placed[2].address + 5, 0, 0, placed[1].address]
    assert data.sum() == 5
    for link, message in (
        ((33, "b"), r"^link of a must be within its 40 bytes, not 33"),
        ((0, "d"), r"^link of a must be a buffer of the launch, not 'd'"),
    ):
        with pytest.raises(InputError, match=message):
            linked(dataclasses.replace(buffer, links=(link,)), placed)
