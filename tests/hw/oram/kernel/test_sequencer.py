"""Launches step by step: the begin and end of each phase, and refusals."""

import random

import pytest

from hw.oram.kernel.arguments import Fault
from hw.oram.kernel.sequencer import LASTING, Sequencer
from tests.support.gateware.streams import set_all, simulate

#: Cycles without a burst that end a phase, and those after the last one.
QUIET, END = 128, 40
UNIT = Sequencer(quiet_cycles=QUIET, end_cycles=END)
LEVELS = (
    "initialize",
    "finish",
    "keyed",
    "init_busy",
    "erase_busy",
    "commands_busy",
    "operations_busy",
    "bus_busy",
    "host_busy",
    "flushing",
)
PULSES = ("keys_start", "init_start", "run_start", "flush", "erase_start", "done")


class World:
    """The sequencer, its inputs, and the cycles of its pulses."""

    def __init__(self, ctx):
        self._ctx, self._told = ctx, dict.fromkeys(LEVELS, 0) | {"keyed": 1}
        self.cycle, self.pulses = 0, {name: [] for name in PULSES}

    async def step(self, cycles=1, *, start=0, keys_done=0, fault=0, **levels):
        """Set levels; pulses are high in the first of the cycles."""
        self._told |= levels
        for n in range(cycles):
            pulses = {"start": start, "keys_done": keys_done} if n == 0 else {"start": 0, "keys_done": 0}
            faults = {one.name.lower(): int(n == 0 and bool(fault & one)) for one in LASTING}
            told = [(getattr(UNIT, name), value) for name, value in (self._told | pulses).items()]
            set_all(self._ctx, [*told, (UNIT.fault, faults)])
            await self._ctx.tick()
            self.cycle += 1
            for name, seen in self.pulses.items():
                if self._ctx.get(getattr(UNIT, name)):
                    seen.append(self.cycle)

    async def initialized(self):
        """Launch, with fixed times of the keys and the empty map."""
        await self.step(start=1, initialize=1)
        await self.step(5)
        await self.step(keys_done=1)
        await self.step(1 + QUIET)

    def get(self, name):
        return self._ctx.get(getattr(UNIT, name))


def play(scenario):
    async def bench(ctx):
        await scenario(World(ctx))

    simulate(UNIT, bench)


def test_a_launch_that_initializes():
    """Keys; then the empty map, until its writes are answered and the ports quiet; then commands."""

    async def scenario(world):
        await world.step(3)
        await world.step(start=1, initialize=1)
        assert world.pulses["keys_start"] == [4]
        await world.step(2 * QUIET)
        assert world.get("initializing")
        assert not world.get("enable")
        await world.step(keys_done=1)
        begun = world.cycle
        assert world.pulses["init_start"] == [begun]
        assert world.get("enable")
        await world.step()
        await world.step(QUIET + 29, init_busy=1)
        await world.step(bus_busy=1)
        await world.step(QUIET, init_busy=0)
        assert not world.pulses["run_start"]
        await world.step(QUIET + 20, bus_busy=0)
        assert world.pulses["run_start"] == [begun + 3 * QUIET + 32]
        assert not world.get("initializing")
        assert world.get("enable")

    play(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_done_when_answered_and_quiet(seed):
    """Whatever the ports do, a fixed time after both; ports to HBM do not count."""
    rng = random.Random(seed)

    async def scenario(world):
        await world.initialized()
        for number in range(1, 4):
            if number > 1:
                await world.step(rng.randrange(5), initialize=0)
                await world.step(start=1)
            assert len(world.pulses["run_start"]) == number
            await world.step(commands_busy=1)
            quiet = 0
            ends = {"commands_busy": rng.randrange(800), "operations_busy": rng.randrange(800)}
            for cycle in range(900):
                levels = {name: int(cycle < end) for name, end in ends.items()}
                bus = int(cycle < 400 and rng.random() < 0.02)
                expected = quiet == QUIET and not any(levels.values())
                before = len(world.pulses["flush"])
                await world.step(host_busy=bus, bus_busy=rng.randrange(2), **levels)
                quiet = 0 if bus else min(QUIET, quiet + 1)
                assert len(world.pulses["flush"]) - before == expected
                if expected:
                    break
            await world.step(END - 3, bus_busy=0, flushing=1)
            await world.step(2, flushing=0)
            assert len(world.pulses["done"]) == number - 1
            await world.step()
            assert world.pulses["done"][number - 1 :] == [world.pulses["flush"][-1] + END]
            assert world.get("status") == 0

    play(scenario)


@pytest.mark.parametrize("again", [False, True])
def test_refused_at_once(again):
    """Nothing begins, and a legal launch clears the bit."""
    fault = Fault.AGAIN if again else Fault.EMPTY

    async def scenario(world):
        if again:
            await world.initialized()
            await world.step(2 * QUIET)
        before = {name: len(seen) for name, seen in world.pulses.items()}
        await world.step(start=1, initialize=int(again))
        assert world.pulses["done"][-1] == world.cycle
        assert world.get("status") == fault
        assert not world.get("halt")
        await world.step(3 * QUIET)
        assert {name: len(seen) for name, seen in world.pulses.items()} == before | {
            "done": before["done"] + 1
        }
        assert world.get("status") == fault
        await world.step(start=1, initialize=int(not again))
        assert world.get("status") == 0
        assert world.pulses["run_start" if again else "keys_start"][-1] == world.cycle

    play(scenario)


def test_refused_until_all_secrets_are_written():
    """No key is derived of words that are not written, and EMPTY comes first."""

    async def scenario(world):
        await world.step(3, keyed=0)
        for initialize, fault in ((1, Fault.UNKEYED), (0, Fault.EMPTY), (1, Fault.UNKEYED)):
            await world.step(start=1, initialize=initialize)
            assert world.pulses["done"][-1] == world.cycle
            assert world.get("status") == fault
            assert not world.get("enable")
            await world.step(3 * QUIET)
        assert len(world.pulses["done"]) == 3
        assert not world.pulses["keys_start"]
        await world.step(start=1, keyed=1)
        assert world.get("status") == 0
        assert world.pulses["keys_start"] == [world.cycle]

    play(scenario)


async def erased(world):
    """Follow the erasure to its end: HBM, then the keys, which are forgotten."""
    assert world.pulses["erase_start"] == [world.cycle]
    assert world.get("forget")
    assert not world.get("enable")
    await world.step(77)
    assert not world.pulses["keys_start"][1:]
    await world.step(erase_busy=0)
    assert world.pulses["keys_start"][1:] == [world.cycle]
    await world.step(33)
    assert not world.get("erased")
    assert not world.pulses["done"]
    await world.step(keys_done=1)
    assert world.pulses["done"] == [world.cycle]
    assert world.get("erased")


async def refused_from_now_on(world, fault):
    """Nothing begins any more."""
    begun = {name: list(seen) for name, seen in world.pulses.items() if name != "done"}
    for initialize, refused in ((0, Fault.EMPTY), (1, Fault.AGAIN)):
        await world.step(5)
        await world.step(start=1, initialize=initialize)
        assert world.pulses["done"][-1] == world.cycle
        assert world.get("status") == fault | refused
    await world.step(3 * QUIET)
    assert {name: seen for name, seen in world.pulses.items() if name != "done"} == begun
    assert len(world.pulses["done"]) == 3
    assert world.get("erased")


@pytest.mark.parametrize("fault", LASTING)
def test_faults_last(fault):
    """A launch with a fault ends when the ports are quiet, whatever is unanswered, and HBM is erased."""

    async def scenario(world):
        await world.initialized()
        await world.step(200, commands_busy=1, operations_busy=1, erase_busy=1)
        await world.step(fault=fault, host_busy=1)
        assert world.get("status") == fault
        assert world.get("halt")
        await world.step(QUIET)
        assert not world.pulses["erase_start"]
        await world.step(QUIET + 1, host_busy=0)
        await erased(world)
        assert world.get("status") == fault
        await refused_from_now_on(world, fault)

    play(scenario)


def test_finished():
    """As of its start, a launch erases HBM when all is answered; later arguments do not count."""

    async def scenario(world):
        await world.initialized()
        await world.step(QUIET + END + 2)
        assert world.pulses.pop("done")
        world.pulses["done"] = []
        await world.step(start=1, initialize=0, finish=1)
        await world.step(200, commands_busy=1, erase_busy=1, finish=0)
        assert not world.pulses["erase_start"]
        await world.step(commands_busy=0)
        await erased(world)
        assert not world.get("halt")
        await refused_from_now_on(world, 0)

    play(scenario)


def test_a_fault_between_launches():
    """The next launch erases HBM and does nothing else."""

    async def scenario(world):
        await world.initialized()
        await world.step(QUIET + END + 2)
        assert world.pulses.pop("done")
        world.pulses["done"] = []
        await world.step(fault=Fault.LATE_WRITE)
        await world.step(QUIET, erase_busy=1)
        await world.step(start=1, initialize=0)
        await erased(world)
        assert len(world.pulses["run_start"]) == 1

    play(scenario)


def test_a_fault_while_the_empty_map_is_written():
    """The rest of the empty map is not awaited."""

    async def scenario(world):
        await world.step(start=1, initialize=1)
        await world.step(keys_done=1, init_busy=1, commands_busy=1)
        await world.step(2 * QUIET)
        assert not world.pulses["run_start"]
        await world.step(fault=Fault.LATE_WRITE)
        await world.step(2 * QUIET)
        assert len(world.pulses["run_start"]) == len(world.pulses["erase_start"]) == 1
        assert world.get("status") == Fault.LATE_WRITE

    play(scenario)


@pytest.mark.parametrize("late", [False, True])
def test_changes_that_do_not_leave_in_time(late):
    """A fault, and HBM is erased; ``done`` is not earlier for changes that left sooner."""

    async def scenario(world):
        await world.initialized()
        await world.step(QUIET + 2)
        assert len(world.pulses["flush"]) == 1
        await world.step(END - 3, flushing=1, erase_busy=1)
        await world.step(2, flushing=int(late))
        assert not world.pulses["done"]
        await world.step()
        if late:
            await erased(world)
            assert world.get("status") == Fault.LATE_WRITE
        else:
            assert world.pulses["done"] == [world.pulses["flush"][0] + END]

    play(scenario)
