# amaranth: UnusedElaboratable=no
"""The side of keys, cycle by cycle: when parts are taken, and what the rows are told of each of them."""

import random

import pytest

from hw.attention.core.key_side import KeySide
from hw.attention.core.row.maximum import LOGIT_TILES
from hw.attention.core.timing import CoreTiming
from tests.hw.attention.plain import small
from tests.support.gateware.streams import plain, simulate

CONFIGS = {
    "plain": small(lanes=16, tile_keys=16, folds=1),
    "folds": small(lanes=16, tile_keys=32, folds=3),
    "cap": small(lanes=32, tile_keys=16, folds=2, logit_cap=True, streams=2),
}


def random_passes(rng, config, count):
    """Passes of tiles; the last tile of each may be short, or a pass may be a key alone."""
    passes = []
    for _ in range(count):
        parts = {"last_key_part": rng.randrange(config.folds), "last_value_part": rng.randrange(config.folds)}
        tiles = rng.choice([1, 1, 2, 3])
        passes.append([])
        for n in range(tiles):
            last = n == tiles - 1
            length = rng.choice([1, 2, rng.randint(1, config.tile_keys)]) if last else config.tile_keys
            tile = {
                "first": rng.randrange(1 << 16),
                "last_index": length - 1,
                "opens": n == 0,
                "closes": last,
            }
            tile |= {"dummy": 0, **parts}
            if config.logit_cap:
                tile["cap"] = rng.randrange(1 << 23)
            passes[-1].append(tile)
    return passes


class Model:
    """What the side must do: passes, tiles, keys and parts counted one by one."""

    def __init__(self, config, passes):
        self.config, self.passes = config, passes
        self.taken = -1  # the current pass
        self.active = False
        self.tile = self.key = self.part = 0
        self.logits = self.tiles = self.entry = self.slot = 0  # in the buffer, and where the next ones go

    @property
    def current(self):
        return self.passes[self.taken][self.tile]

    @property
    def room(self):
        return self.logits < self.config.logit_entries and self.tiles < LOGIT_TILES

    def step(self, issue):
        """Take a part or none; gives what is to be seen of it."""
        if not issue:
            return None
        tile = self.current
        ends_key = self.part == tile["last_key_part"]
        ends_tile = ends_key and self.key == tile["last_index"]
        seen = {
            "place": {"bank": self.taken % 2, "part": self.part},
            "tile": tile,
            "key": self.key,
            "ends_key": ends_key,
            "ends_tile": ends_tile,
            "ends_pass": ends_tile and bool(tile["closes"]),
            "entry": self.entry,
            "slot": self.slot,
        }
        self.part = 0 if ends_key else self.part + 1
        if ends_key:
            self.key = 0 if ends_tile else self.key + 1
            self.entry = (self.entry + 1) % self.config.logit_entries
            self.logits += 1
        if ends_tile:
            self.tile += 1
            self.tiles += 1
            self.slot = (self.slot + 1) % LOGIT_TILES
        return seen


@pytest.mark.sample(2)
@pytest.mark.parametrize(("stall", "reads"), [(0.0, 1.0), (0.4, 0.9), (0.1, 0.3)])
@pytest.mark.parametrize("name", CONFIGS)
def test_keys(name, stall, reads):
    config = CONFIGS[name]
    rng = random.Random(f"{name} {stall} {reads}")
    passes = random_passes(rng, config, 14)
    unit, model, timing = KeySide(config), Model(config, passes), CoreTiming(config)
    tiles = [tile for given in passes for tile in given]
    parts = sum((tile["last_index"] + 1) * (tile["last_key_part"] + 1) for tile in tiles)
    trace = []  # of each cycle: what was taken, and all outputs
    causes = dict.fromkeys(("blocked", "starved", "idle"), 0)

    async def bench(ctx):
        offered = tile_number = count = 0
        tile_valid = key_valid = False
        complete, unread = [], []  # tiles, with their logits left
        element = 0
        while count < parts or len(trace) < 40 or len(unread) or trace[-1]["recent"]:
            offered += offered <= model.taken + 1 and offered < len(passes) and rng.random() < 0.3
            loaded = offered > model.taken + 1
            tile_valid = tile_valid or (tile_number < len(tiles) and rng.random() >= stall)
            key_valid = key_valid or (count < parts and rng.random() >= stall)
            ctx.set(unit.loaded, loaded)
            ctx.set(unit.i_tile.valid, tile_valid)
            if tile_valid:
                ctx.set(unit.i_tile.payload, tiles[tile_number])
            ctx.set(unit.i_key.valid, key_valid)
            ctx.set(unit.i_key.payload, [element - 128] * config.lanes)
            freed = bool(unread) and rng.random() < reads
            ended = freed and unread[0] == 1
            ctx.set(unit.freed, freed)
            ctx.set(unit.ended, ended)

            may = model.active and model.room and tile_valid
            assert ctx.get(unit.i_key.ready) == may
            issue = may and key_valid
            assert ctx.get(unit.issue) == issue
            assert ctx.get(unit.idle) == (not model.active)
            assert ctx.get(unit.blocked) == (model.active and not model.room)
            assert ctx.get(unit.starved) == (model.active and model.room and not issue)
            for cause in causes:
                causes[cause] += ctx.get(getattr(unit, cause))
            seen = model.step(issue)
            ends_tile, ends_pass = (bool(seen) and seen[what] for what in ("ends_tile", "ends_pass"))
            assert ctx.get(unit.i_tile.ready) == ends_tile
            take = loaded and (not model.active or ends_pass)
            assert ctx.get(unit.take) == take
            outputs = ("pick", "key", "accumulate", "first", "adopt", "index", "cap", "write")
            now = {output: plain(ctx.get(getattr(unit, output))) for output in outputs}
            now |= {"complete": ctx.get(unit.tile.valid), "tile": plain(ctx.get(unit.tile.payload))}
            recent = any(past["seen"] for past in trace[-40:])
            trace.append(now | {"seen": seen, "element": element, "take": take, "recent": recent})

            complete.append(now["tile"]["last_index"] + 1 if now["complete"] else 0)
            if issue:
                count, key_valid, element = count + 1, False, (element + 1) % 256
            if ends_tile:
                tile_number, tile_valid = tile_number + 1, False
            if take:
                model.taken, model.tile = model.taken + 1, 0
            model.active = take or (model.active and not ends_pass)
            model.logits -= freed
            model.tiles -= ended
            if freed:
                unread[0] -= 1
                if not unread[0]:
                    unread.pop(0)
            if complete[-1]:
                unread.append(complete[-1])
            await ctx.tick()

    simulate(unit, bench, limit=20_000)

    def at(cycle, output):
        return trace[cycle][output] if cycle < len(trace) else None

    picked = None
    opening = True
    expected = {name: set() for name in ("adopt", "write", "complete", "accumulate")}
    for cycle, now in enumerate(trace):
        if now["pick"]["valid"]:
            picked = now["pick"]["place"]
            if opening:
                expected["adopt"].add(cycle + 1 + timing.adopt)
            opening = False
        opening = opening or now["take"]
        seen = now["seen"]
        if not seen:
            continue
        assert picked == seen["place"]
        assert at(cycle + 1, "key") == [now["element"] - 128] * config.lanes
        if config.folds > 1:
            expected["accumulate"].add(cycle + 1 + timing.first)
            assert at(cycle + 1 + timing.first, "first") == (seen["place"]["part"] == 0)
        if not seen["ends_key"]:
            continue
        tile = seen["tile"]
        assert at(cycle + 1 + timing.scale, "index") == tile["first"] + config.streams * seen["key"]
        if config.logit_cap:
            assert at(cycle + 1 + timing.cap, "cap") == tile["cap"]
        expected["write"].add(cycle + 1 + timing.write)
        write = {name: seen[name] for name in ("entry", "slot")}
        write |= {"valid": 1, "first": seen["key"] == 0, "last": seen["ends_tile"], "opens": tile["opens"]}
        assert at(cycle + 1 + timing.write, "write") == write
        if seen["ends_tile"]:
            expected["complete"].add(cycle + timing.ready)
            given = at(cycle + timing.ready, "tile")
            assert given == {name: tile[name] for name in given}
    valid = {
        "adopt": [now["adopt"] for now in trace],
        "write": [now["write"]["valid"] for now in trace],
        "complete": [now["complete"] for now in trace],
        "accumulate": [now["accumulate"] for now in trace],
    }
    for output, bits in valid.items():
        assert {cycle for cycle, bit in enumerate(bits) if bit} == expected[output]
    assert causes["idle"]
    assert causes["starved"] or not stall
    assert causes["blocked"] or reads > 0.5
