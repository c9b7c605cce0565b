"""The page buffer against a list of composed pages, with every pace and places used again."""

import random

import pytest

from hw.oram.config import OramConfig
from hw.oram.core.pages.buffer import PageBuffer
from hw.oram.core.stage.schedule import StageSchedule
from tests.support.gateware.streams import set_all, simulate
from tests.support.oram.workloads import SMALLEST

#: By name; the pages of "three" do not fill a power of two rows.
CONFIGS = {
    "4 lanes": OramConfig(**SMALLEST, aes_lanes=4),
    "2 lanes": OramConfig(**SMALLEST, aes_lanes=2),
    "1 lane": OramConfig(**SMALLEST, aes_lanes=1),
    "three": OramConfig(**{**SMALLEST, "slots": 10, "inflight": 4}),
}
TAG_BITS = 128
PAGES = 60


class Played:
    """Touches at random distances, and the pages that they are opened, forwarded and composed as."""

    def __init__(self, config, seed):
        rng = random.Random(seed)
        beats, pace, places = config.page_beats, config.page_beat_cycles, config.scoreboard_pages
        composed_after = pace + StageSchedule(config).page
        forward_cycles = StageSchedule(config).page + PageBuffer.LATENCY
        self.inputs, self.expected, self.forged = {}, {}, set()
        self.forwards = set()
        turns, composed = [], []
        turn = 5
        for n in range(PAGES):
            content = [rng.getrandbits(512) for _ in range(beats)]
            version = rng.getrandbits(48)
            # From a place of the last pages, or not; the earliest cycle for the newest one possible.
            back = rng.choice([0, 1, 2, 3, rng.randrange(1, places + 1)])
            forward = int(0 < back <= n)
            if forward:
                turn = max(turn, turns[n - back] + forward_cycles)
            opened = [rng.getrandbits(512) for _ in range(beats)]
            self._put(turn, "place", n - back if forward else rng.randrange(places))
            fields = {"page_valid": 1, "forward": forward, "place": (n - back) % places}
            self._put(turn + 1, "turn", fields)
            genuine = rng.randrange(2)
            self._put(turn + 9 + beats * pace, "verdict", genuine)
            if not genuine and not forward:
                self.forged.add(turn + 9 + beats * pace)
            self._put(turn + composed_after - 2 - rng.randrange(2), "seal", version)
            for b in range(beats):
                self._put(turn + 1 + b * pace, "beat", 1)
                self._put(turn + 1 + b * pace + pace, "opened", opened[b])
                self._put(turn + 1 + composed_after + b * pace, "composed", content[b])
                own = composed[n - back][b] if forward else opened[b]
                self.expected[turn + 1 + pace + b * pace] = own
            self.forwards.add((forward, forward and turn == turns[n - back] + forward_cycles))
            first = content[0] >> 48 << 48 | version
            composed.append([first, *content[1:]])
            turns.append(turn)
            room = max(config.item_cycles, beats * pace)
            if rng.randrange(2):  # a touch without a page, whatever its other fields
                bare = {"page_valid": 0, "forward": rng.randrange(2), "place": rng.randrange(places)}
                self._put(turn + 1 + rng.randrange(1, room), "turn", bare)
            turn += room + rng.choice([0, 0, 0, 1, 7])
        self.end = turn + 40 + composed_after + beats * pace

    def _put(self, cycle, name, value):
        assert (cycle, name) not in self.inputs
        self.inputs[cycle, name] = value


@pytest.mark.parametrize("name", CONFIGS)
def test_a_page_is_the_opened_or_the_composed_one(name):
    config, dut = CONFIGS[name], PageBuffer(CONFIGS[name])
    played = Played(config, name)
    assert played.forwards == {(0, 0), (1, False), (1, True)}
    found, forged = {}, set()
    streams = {each: getattr(dut, each) for each in ("turn", "opened", "composed", "seal", "verdict")}

    async def bench(ctx):
        tick = ctx.tick().sample(dut.page.valid, dut.page.payload, dut.forged)
        for cycle in range(played.end):
            driven = [(dut.beat, int((cycle, "beat") in played.inputs))]
            if (cycle, "place") in played.inputs:
                driven.append((dut.place, played.inputs[cycle, "place"] % config.scoreboard_pages))
            for each, pins in streams.items():
                value = played.inputs.get((cycle, each))
                driven.append((pins.valid, int(value is not None)))
                if each == "seal":
                    driven.append((pins.payload.version, value or 0))
                elif value is not None:
                    driven.append((pins.payload, value))
            set_all(ctx, driven)
            _, _, valid, payload, wrong = await tick
            if valid:
                found[cycle] = payload
            if wrong:
                forged.add(cycle)

    simulate(dut, bench)
    assert found == played.expected
    assert forged == played.forged
