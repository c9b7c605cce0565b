# amaranth: UnusedElaboratable=no
"""Dot products of one and two rows, of keys in one part and in several."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.score import ScoreUnit
from tests.support.gateware.play import play


@pytest.mark.sample(2)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("lanes", "folds"), [(16, 1), (16, 4), (48, 2), (64, 2), (80, 1), (128, 4)])
def test_score(lanes, folds, rows):
    config = AttentionConfig(lanes=lanes, folds=folds, merge_lanes=2)
    rng = np.random.default_rng([lanes, folds, rows])
    unit = ScoreUnit(config, rows=rows)
    passes = [(int(parts), int(rng.integers(1, 12))) for parts in rng.integers(1, folds + 1, 4)]
    queries = [rng.integers(-128, 128, (rows, parts, lanes)) for parts, _ in passes]
    keys = [rng.integers(-128, 128, (count, parts, lanes)) for parts, count in passes]
    # The largest scores of both signs, in all combinations of rows.
    queries[0][:] = -128
    keys[0][:] = -128
    if rows == 2:
        queries[1][0], queries[1][1] = 127, -128
        keys[1][:] = -128

    def load(n):
        """The loads of pass n: rows and parts in any order, each part on its own."""
        order = [(row, part) for row in range(rows) for part in range(passes[n][0])]
        rng.shuffle(order)
        return [
            [
                (unit.query, queries[n][row, part].tolist()),
                (unit.place, {"bank": n % 2, "part": int(part)}),
                (unit.load, 1 << int(row)),
            ]
            for row, part in order
        ]

    idle = [(unit.load, 0), (unit.query, [-1] * lanes)]
    cycles, firsts, expected = [*load(0), idle], {}, {}
    for n, (parts, count) in enumerate(passes):
        loads = load(n + 1) if n + 1 < len(passes) else []
        for at in range(count):
            for part in range(parts):
                # One key in four waits, with the part before on the port or anything else.
                while rng.random() < 0.25:
                    cycles.append([(unit.pick.valid, 0), *idle])
                pick = (unit.pick, {"valid": 1, "place": {"bank": n % 2, "part": part}})
                key = len(cycles)  # in the cycle of its pick
                cycles.append([pick, *(loads.pop(0) if loads else idle)])
                firsts[key] = (part == 0, keys[n][at, part])
                if part == parts - 1:
                    raw = np.einsum("rpd,pd->r", queries[n], keys[n][at])
                    expected[key] = raw.tolist()
        cycles += [[(unit.pick.valid, 0), *item] for item in loads]
    cycles.append(idle)
    inputs = [[*cycle] for cycle in cycles]
    for n in range(len(inputs)):
        first, key = firsts.get(n, (0, rng.integers(-128, 128, lanes)))
        inputs[n].append((unit.key, key.tolist()))
    delay = 1 + ScoreUnit.first_latency(config)
    inputs += [[] for _ in range(delay)]
    for n in range(len(inputs) - delay):
        first, _ = firsts.get(n, (rng.integers(2), None))
        inputs[n + delay] += [(unit.accumulate, n in firsts), (unit.first, int(first))]
    got = play(unit, inputs, [unit.o[row] for row in range(rows)], 1 + ScoreUnit.latency(config))
    assert {n: got[n] for n in expected} == expected
