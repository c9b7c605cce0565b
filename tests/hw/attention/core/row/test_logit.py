# amaranth: UnusedElaboratable=no
"""From scores to logits: scale, visibility, cap and slope, with settings that change between two scores."""

import math

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.alibi import Alibi
from hw.attention.core.row.cap import LogitCap, tanh_table
from hw.attention.core.row.logit import LogitUnit
from tests.hw.attention import reference
from tests.support.gateware.play import play

LINES = [reference.tanh_line(segment) for segment in range(1024)]


def settings(rng, config):
    """Anything, the extremes included."""
    drawn = {
        "first": int(rng.choice([0, 3, rng.integers(0, 65537)])),
        "end": int(rng.choice([0, 65536, rng.integers(0, 65537)])),
        "multiplier": int(rng.choice([1, 2**17 - 1, rng.integers(1, 2**17)])),
        "shift": int(rng.choice([1, 47, rng.integers(1, 48), 15])),
    }
    if config.alibi:
        drawn["position"] = int(rng.choice([-65535, 65535, rng.integers(-65535, 65536)]))
        drawn["slope"] = int(rng.choice([0, 2**26 - 1, rng.integers(0, 2**26), 2 ** rng.integers(1, 26)]))
    return drawn


@pytest.mark.sample(2)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("cap", "alibi"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_logit(cap, alibi, rows):
    config = AttentionConfig(logit_cap=bool(cap), alibi=bool(alibi), folds=4)
    rng = np.random.default_rng([cap, alibi, rows])
    unit = LogitUnit(config, rows=rows)
    caps = [0, 2**23 - 1, 2**14, 1]
    limit = 2 ** (config.score_bits - 1)
    queries = [[settings(rng, config) for _ in range(rows)] for _ in range(30)]

    # Settings of the first query come before it; those of any other from the cycle of `adopt` of the query
    # before it on, to the one before their own.
    before = [[(unit.settings, queries[0][row]), (unit.configure, 1 << row)] for row in range(rows)]
    before.append([(unit.adopt, 1), (unit.configure, 0)])
    inputs, expected, cap_of = [], [], []
    previous = [before[-1]]
    for n, query in enumerate(queries):
        count = rows + int(rng.integers(0, 8))
        for at in range(count):
            scores = rng.integers(-limit, limit, rows) >> rng.integers(0, config.score_bits)
            scores[0] = rng.choice([scores[0], -limit + 2**10, limit - 1])
            own = query[int(rng.integers(rows))]
            key = int(np.clip(rng.choice([own["first"], own["end"], 0]) + rng.integers(-1, 2), 0, 65535))
            cycle = [(unit.i[row], int(scores[row])) for row in range(rows)]
            inputs.append([*cycle, (unit.key, key), (unit.adopt, int(at == count - 1)), (unit.configure, 0)])
            cap_of.append(int(rng.choice(caps)) if cap else 0)
            expected.append(
                [logit(config, own, int(x), key, cap_of[-1]) for own, x in zip(query, scores, strict=True)]
            )
        if n + 1 < len(queries):
            for row, cycle in enumerate([*previous, *inputs[len(inputs) - count :]][:rows]):
                cycle += [(unit.settings, queries[n + 1][row]), (unit.configure, 1 << row)]
        previous = [inputs[-1]]
    if cap:
        delay = LogitUnit.cap_latency(config)
        inputs = [*inputs, *([] for _ in range(delay))]
        for n, value in enumerate(cap_of):
            inputs[n + delay] = [*inputs[n + delay], (unit.cap, value)]
    outputs = [*(unit.o[row] for row in range(rows)), unit.visible, unit.cut]
    got = play(unit, inputs, outputs, LogitUnit.latency(config), before=before)
    for n, rows_expected in enumerate(expected):
        *logits, visible, cut = got[n]
        assert logits == [t for t, _, _ in rows_expected]
        assert [visible >> row & 1 for row in range(rows)] == [seen for _, seen, _ in rows_expected]
        assert [cut >> row & 1 for row in range(rows)] == [beyond for _, _, beyond in rows_expected]


def logit(config, own, score, key, cap):
    t = reference.scaled(score, own["multiplier"], own["shift"])
    beyond = not cap and t != reference.rounded(score * own["multiplier"], own["shift"])
    if cap:
        t = reference.capped(t, cap, LINES)
    if config.alibi:
        t = reference.sloped(t, own["slope"], own["position"] - key)
    return t, own["first"] <= key < own["end"], beyond


def test_rows_without_a_query_see_nothing():
    """The second pass configures the second row alone, and the third one neither."""
    unit = LogitUnit(AttentionConfig(), rows=2)
    everything = {"first": 0, "end": 65536, "multiplier": 1, "shift": 1}
    inputs = []
    for configured in (0b11, 0b10, 0b00):
        inputs += [
            [(unit.settings, everything), (unit.configure, configured), (unit.adopt, 0), (unit.key, 5)],
            [(unit.configure, 0), (unit.adopt, 1)],
        ]
    inputs += [[(unit.adopt, 0)], []]
    got = play(unit, inputs, unit.visible, LogitUnit.latency(AttentionConfig()))
    assert got == [0, 0, 0b11, 0b11, 0b10, 0b10, 0b00, 0b00]


def test_cap():
    """Around the ends of the table, where it clamps, and without a cap."""
    rng = np.random.default_rng(1)
    ends = [0, 1, -1, 2**21 - 1, 2**21, -(2**21), 2**23 - 1, -(2**23), 2**11 - 1, 2**11, -(2**11)]
    x = [*ends, *(int(v) for v in rng.integers(-(2**21), 2**21, 400) >> rng.integers(0, 21, 400))]
    caps = [int(c) for c in rng.choice([0, 2**23 - 1, 1, 295484], len(x))]
    caps[: len(ends)] = [2**23 - 1] * len(ends)
    unit = LogitCap(rows=2)
    inputs = [[(unit.i[0], a), (unit.i[1], b)] for a, b in zip(x, reversed(x), strict=True)]
    inputs += [[] for _ in range(LogitCap.CAP_LATENCY)]
    for n, cap in enumerate(caps):
        inputs[n + LogitCap.CAP_LATENCY] = [*inputs[n + LogitCap.CAP_LATENCY], (unit.cap, cap)]
    got = play(unit, inputs, [unit.o[0], unit.o[1]], LogitCap.LATENCY)
    for n, cap in enumerate(caps):
        expected = [reference.capped(v, cap, LINES) if cap else v for v in (x[n], x[-1 - n])]
        assert got[n] == expected


def test_tanh_is_close():
    assert list(tanh_table()) == LINES
    x = np.arange(0, 2**21, 509)
    table = np.array(LINES)[x >> 11]
    line = table[:, 0] / 2**19 + table[:, 1] / 2**19 * (x & 2047) / 2048
    assert np.abs(line - np.tanh(x / 2**18)).max() < 5e-6
    assert math.tanh(8) > 1 - 2**-20


def test_alibi():
    """Both directions, the largest fall, and clamping at both ends."""
    rng = np.random.default_rng(2)
    cases = [
        (65535, 0, 2**26 - 1, 2**23 - 1),
        (0, 65535, 2**26 - 1, -(2**23)),
        (-65535, 0, 2**26 - 1, 2**23 - 1),
        (5, 5, 2**26 - 1, 77),
        *(
            (int(p), int(k), int(s), int(t))
            for p, k, s, t in zip(
                rng.integers(-65535, 65536, 200),
                rng.integers(0, 65536, 200),
                2 ** rng.integers(0, 26, 200) + rng.integers(0, 2, 200),
                rng.integers(-(2**23), 2**23, 200),
                strict=True,
            )
        ),
    ]
    unit = Alibi()
    inputs = [[] for _ in range(len(cases) + Alibi.LOGIT_LATENCY)]
    for n, (position, key, slope, t) in enumerate(cases):
        inputs[n] += [(unit.position, position), (unit.key, key)]
        inputs[n + 1].append((unit.slope, slope))
        inputs[n + Alibi.LOGIT_LATENCY].append((unit.i, t))
    got = play(unit, inputs, unit.o, Alibi.LATENCY)
    expected = [reference.sloped(t, slope, abs(position - key)) for position, key, slope, t in cases]
    assert got[: len(cases)] == expected
