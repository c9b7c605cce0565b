"""Bursts of the link to the host: in order of time, within its rates and limits."""

from dataclasses import replace

import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.oram.model.host import HostMemory
from hw.oram.model.link import Link, block_bursts

BOARD = load_board("u55c")
SECOND = BOARD.clock_mhz * 1e6
LARGE = 64 * 2**20  # an eighth of it lies in the host's cache


def carried(bursts, *, used_bytes=0, **timing):
    """Carry bursts (cycle, write, bytes) and return the cycles of each."""
    host_memory = replace(BOARD.host, timing=replace(BOARD.host.timing, **timing))
    board = replace(BOARD, memories=(BOARD.memory, host_memory))
    host = HostMemory(Link(board, used_bytes=used_bytes))
    ports = {write: host.port(write=write) for write in (False, True)}
    found = {}
    for n, (cycle, write, size) in enumerate(bursts):
        host.ask(ports[write], cycle, 0, size, lambda a, b, n=n: found.update({n: (a, b)}))
    host.run()
    return [found[n] for n in range(len(bursts))]


def test_one_burst_takes_the_latency():
    ((first, last),) = carried([(100, False, 256)])
    assert first == 100 + 135 + 1
    assert last == 100 + 135 + 1 + 5  # three more beats of 1.5 cycles
    ((last, answered),) = carried([(100, True, 256)])
    assert last == 104
    assert answered == 101 + 6 + 225 + 2  # the bytes, the latency, parts of cycles


@pytest.mark.parametrize("write", [False, True])
def test_a_direction_has_its_rate(write):
    count = 4000
    found = carried([(0, write, 1024)] * count, read_in_flight_bytes=10**9, read_bursts=999, write_bursts=999)
    assert found[-1][1] == pytest.approx(count * 1024 * SECOND / 12.77e9, rel=0.01)


def test_beyond_the_cache_both_directions_share_a_rate():
    count, much = 4000, {"read_in_flight_bytes": 10**9, "read_bursts": 999, "write_bursts": 999}
    bursts = [(0, n % 2 == 1, 1024) for n in range(count)]
    end = max(last for _, last in carried(bursts, used_bytes=LARGE, **much))
    assert end == pytest.approx(count * 1024 * SECOND * 7 / 8 / 12.45e9, rel=0.02)
    alone = carried([(0, False, 1024)] * count, used_bytes=LARGE, **much)[-1][1]
    byte = (1 / 8) / 12.77e9 + (7 / 8) / 11.4e9
    assert alone == pytest.approx(count * 1024 * SECOND * byte, rel=0.02)


@pytest.mark.parametrize(("write", "size", "each"), [(True, 256, 235), (False, 64, 137)])
def test_few_bursts_are_under_way(write, size, each):
    """Handshakes, latency and bytes, 32 at once."""
    count = 6400
    found = carried([(0, write, size)] * count)
    assert found[-1][1] == pytest.approx(count / 32 * each, rel=0.01)


def test_ports_do_not_wait_for_each_other():
    """The first burst of each port begins when there is room, independent of the other port's queue."""
    bursts = [(0, True, 256)] * 400 + [(500, True, 256)]
    behind = carried(bursts)[-1][1]
    host = HostMemory(Link(BOARD, used_bytes=0))
    pages, ring = host.port(write=True), host.port(write=True)
    found = {}
    for n, (cycle, _, size) in enumerate(bursts):
        port = pages if n < 400 else ring
        host.ask(port, cycle, 0, size, lambda last, answered, n=n: found.update({n: answered}))
    host.run()
    assert behind > 2700
    assert 734 <= found[400] < 500 + 2 * 235


def test_time_counts_and_not_who_asks_first():
    bursts = [(cycle, cycle % 14 == 0, 256) for cycle in range(0, 2000, 7)]
    forward, backward = carried(bursts, used_bytes=LARGE), carried(bursts[::-1], used_bytes=LARGE)
    assert forward == backward[::-1]


def test_blocks_are_cut_at_bursts():
    found = []
    host = HostMemory(Link(BOARD, used_bytes=0))
    host.ask(host.port(write=False), 0, 960, 192, lambda first, last: found.append((first, last)))
    host.run()
    assert found == [(138, 140)]  # two beats, behind one of another burst
    assert [block_bursts(size) for size in (64, 256, 1024, 192, 896)] == [1, 1, 1, 1.125, 1.75]


def test_boards_without_a_host_are_refused():
    with pytest.raises(InputError, match="access to the host's memory"):
        Link(load_board("zcu104"), used_bytes=0)
