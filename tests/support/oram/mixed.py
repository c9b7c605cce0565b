"""One launch of many workloads, for tests that they are indistinguishable."""

from typing import NamedTuple

import numpy as np

from hw.oram.core.layouts import Code
from sim.engines.oram.job import simulation_secrets
from sim.golden.oram.front import map_keys
from sim.golden.oram.map import Command, keyed_map
from tests.support.oram.workloads import WORKLOADS, commands_of, load_commands, tensors_of

#: Parts whose labels are in order, or chosen with knowledge of labels.
TOLD = ("load", "starved", "burst on a page")


class Mixed(NamedTuple):
    """Operations as tensors of a job, and their parts."""

    tensors: dict
    phases: dict  #: Numbers of the operations of each part, by its name.
    fixed: np.ndarray  #: Operations of the last part on the fixed key.


def mixed_launch(config, rng, each, compared=0):
    """Return operations on a map that holds some keys.

    Parameters
    ----------
    each
        Operations of every workload, and of two that know labels: one avoids a page, one touches it alone.
    compared
        Operations behind them; a coin makes each a GET of one key or a random operation.
    """
    secrets = simulation_secrets(0)
    keys = map_keys(secrets.seed, secrets.epoch)
    state = keyed_map(config, permutation_key=keys.permutation, draw_key=keys.draw)
    universe = config.keys // 4
    done, phases = [], {}

    def phase(name, commands):
        phases[name] = np.arange(len(done), len(done) + len(commands))
        done.extend(commands)

    loads = load_commands(config, universe)
    phase(TOLD[0], loads)
    for workload in WORKLOADS:
        phase(workload, commands_of(workload, rng, each, config, universe=config.keys // 2))
    state.run(done)
    phase(TOLD[1], list(chosen(state, loads, rng, each, wanted=False)))
    phase(TOLD[2], list(chosen(state, loads, rng, each, wanted=True)))
    fixed = rng.random(compared) < 0.5
    others = commands_of("uniform", rng, compared, config, universe=config.keys // 2)
    one = Command(Code.GET, loads[0].key, bytes(config.value_bytes))
    phase("compared", [one if same else other for same, other in zip(fixed, others, strict=True)])
    return Mixed(tensors_of(done) | {"state": np.array(True)}, phases, fixed)


def chosen(state, loads, rng, count, *, wanted, page=3):
    """Return GETs of keys with the label ``page``, or of all other keys, so that its list gets long."""
    for _ in range(count):
        entries = state.position.entries
        permuted = state.permuted([load.key for load in loads])
        lie = [u in entries and page in entries[u].records for u in permuted]
        those = [load for load, lies in zip(loads, lie, strict=True) if lies == wanted] or loads
        command = those[rng.integers(len(those))]._replace(code=Code.GET)
        state.run([command])
        yield command
