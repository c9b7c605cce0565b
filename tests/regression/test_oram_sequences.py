"""Random sequences of launches of the oblivious map, of any length and pace, without reset between them.

The map's content persists, and equals a Python dict. Nothing else of a launch affects the next: neither
refused calls, nor moved rings, nor late commands.
"""

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import COMMANDS, RESPONSES, launch_buffers
from hw.oram.driver.sealing import stop_record
from hw.oram.kernel.arguments import Fault
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL, roomy
from sim.run.adapter import Tamper
from sim.run.run import compare
from tests.support.oram.bus import BOARD, simulated
from tests.support.oram.workloads import answers

#: Few ports and a small window.
FEW = {"position_ports": 2, "record_ports": 2, "inflight": 8}
_BOTH = roomy(replace(SMALL, **FEW, touch="both", pad="always", value_bytes=64, slots=8, list_slots=8))
_NARROW = roomy(
    replace(SMALL, **FEW, log_n=9, key_bits=32, mac_bits=64, bin_split=1, alpha=0.5, value_bytes=16)
)
#: A map, and a host: the share of groups of commands that are late.  The first two, which share a simulator
#: with other tests, are in `make test`.
CONFIGS = {
    "small, at once": (SMALL, 0.0),
    "small, late": (SMALL, 1.0),
    "both": (_BOTH, 0.5),
    "narrow": (_NARROW, 0.5),
}
LAUNCHES, SLOTS = 5, 64
#: Late commands begin a group, whatever its size.
GROUP = 16


def operations(config, rng):
    """Draw operations on few keys, so that later launches find keys of earlier ones."""
    count = int(rng.integers(60, 130))
    keys = rng.integers((1 << config.key_bits) - 1, size=24, dtype=np.uint64)
    return {
        "codes": rng.choice([*Code, 9], count, p=[0.05, 0.3, 0.4, 0.15, 0.05, 0.05]).astype(np.uint8),
        "keys": rng.choice(keys, count),
        "values": rng.integers(256, size=(count, config.value_bytes), dtype=np.uint8),
        "rejected": rng.random(count) < 0.05,
        "state": np.array(True),
        "seed": np.array(int(rng.integers(1 << 16))),
    }


class Sequence:
    """A launch of several calls, and the expected end of each.

    Each call has rings of its own, consecutive in memory. Some end after a number of operations, others at a
    stop record. The first call precedes initialization, and a later one initializes again.
    """

    def __init__(self, job, config, late, rng):
        self.job, self.config, self.late, self.rng = job, config, late, rng
        count, size = len(job.operations), config.command_bytes
        self.ends = [SLOTS]
        while max(np.diff([0, *self.ends])) >= SLOTS:  # one call is no longer than its ring
            cuts = rng.choice(np.arange(1, count), LAUNCHES - 1, replace=False)
            self.ends = [*sorted(cuts.tolist()), count]
        self.rings = np.zeros((LAUNCHES, SLOTS, size), np.uint8)
        self.tampers, calls = [], []
        self.statuses, self.answered = [Fault.EMPTY], [0]
        again = int(rng.integers(1, LAUNCHES))
        for number, (first, end) in enumerate(zip([0, *self.ends], self.ends, strict=False)):
            if number == again:
                foreign = dict.fromkeys(job.secrets.scalars, 1)
                calls.append(foreign | {"initialize": 1, "operation_count": 7})
                self.statuses.append(Fault.AGAIN)
                self.answered.append(first)
            calls.append(self._call(number, first, end))
            self.statuses.append(0)
            self.answered.append(end)
        commands, *others = launch_buffers(config, self.rings.reshape(-1, size), state=True)
        one = ADAPTER.launch(job, config, BOARD)
        self.launch = replace(
            one,
            scalars=one.scalars | {"initialize": 0, "operation_count": 0, "ring_slots": SLOTS},
            buffers=(replace(commands, output=True), *others),
            tampers=tuple(self.tampers),
            then=tuple(calls),
        )

    def _call(self, number, first, end):
        for sequence in range(first, end):
            self.rings[number, sequence % SLOTS] = self.job.commands[sequence]
        endless = self.rng.random() < 0.4
        if endless:
            self.rings[number, end % SLOTS] = stop_record(self.config, end)
        for sequence in range(first + 1, end):
            if sequence % GROUP == 0 and self.rng.random() < self.late:
                self.rings[number, sequence % SLOTS, 0] ^= 1
                at = (number * SLOTS + sequence % SLOTS) * self.config.command_bytes
                self.tampers.append(Tamper(COMMANDS, at, 1, at, at, 1, 1))
        ring = number * SLOTS * self.config.command_bytes
        return {
            "initialize": int(number == 0),
            "operation_count": 0 if endless else end - first,
            "poll_cycles": int(self.rng.choice([16, 64, 250])),
            COMMANDS: ring,
            RESPONSES: ring,
        }

    def responses(self, buffers):
        """Return the responses in order, and the bytes of unused slots."""
        rings = buffers[RESPONSES].reshape(LAUNCHES, SLOTS, -1)
        free = np.ones((LAUNCHES, SLOTS), bool)
        found = []
        for ring, (first, end) in enumerate(zip([0, *self.ends], self.ends, strict=False)):
            at = np.arange(first, end) % SLOTS
            found.append(rings[ring, at])
            free[ring, at] = False
        return np.concatenate(found), rings[free]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[pytest.mark.soak] if seed or name in ("both", "narrow") else [])
        for name in CONFIGS
        for seed in range(13)
    ],
)
def test_launches_answer_as_a_dict_whatever_ran_before(name, seed, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short, in the soak too
    (config, late), rng = CONFIGS[name], np.random.default_rng([seed, *name.encode()])
    tensors = operations(config, rng)
    job = ADAPTER.job(tensors, config)
    sequence = Sequence(job, config, late, rng)
    memory = ("model", "jitter", "fast")[(seed + len(name)) % 3]
    done, _ = simulated(config, sequence.launch, tmp_path, memory_mode=memory, seed=seed)

    # Only a map that was never reset continues its counts and refuses to initialize again.
    counters = [call.counters for call in done.answer.calls]
    assert [counted["status"] for counted in counters] == sequence.statuses
    assert [counted["answered_count"] for counted in counters] == sequence.answered
    assert sum(counted["initialization_cycles"] > 0 for counted in counters) == 1

    responses, others = sequence.responses(done.buffers)
    assert (others == others[0, 0]).all()
    found = ADAPTER.outputs(job, config, {**done.buffers, RESPONSES: responses})
    assert compare(found, ADAPTER.golden(job, config)) == ()
    names = ("codes", "keys", "values", "rejected")
    codes, keys, values, rejected = (tensors[one] for one in names)
    rows = zip(codes.tolist(), keys.tolist(), map(bytes, values), rejected.tolist(), strict=True)
    expected = list(answers(rows, config, {}))
    assert found["statuses"].tolist() == [status for status, _, _ in expected]
    assert found["keys"].tolist() == [key for _, key, _ in expected]
    assert found["values"].tobytes() == b"".join(value for _, _, value in expected)
