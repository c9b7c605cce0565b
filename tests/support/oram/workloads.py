"""Random numbers that are quick to draw, operations of every kind, and the answers of a dict."""

import numpy as np

from hw.oram.core.layouts import Code, Status
from sim.golden.oram.map import Command, ObliviousMap

#: The map with the fewest keys, and HBM that answers at once.
SMALLEST = {"log_n": 8, "inflight": 4, "position_cycles": 16, "touch_cycles": 16, "settle_cycles": 16}
_STEP = np.uint64(0x9E3779B97F4A7C15)


def mix(words, bits=64):
    """Permute words of 32 or 64 bits (SplitMix64's finalizer, or Murmur3's)."""
    words = np.asarray(words, np.uint64)
    mask = np.uint64(2**bits - 1)
    steps = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))
    if bits == 32:
        steps = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1))
    for shift, factor in steps:
        words = (words ^ words >> np.uint64(shift)) * np.uint64(factor) & mask
    return words


def draws(config, seed):
    """Return a function as `ObliviousMap` takes it."""

    def give(operations):
        words = np.arange(1, 2 * config.draws + 1, dtype=np.uint64)
        words = 2 * config.draws * np.asarray(operations, np.uint64)[:, None] + words
        words = mix((words + (np.uint64(seed) << np.uint64(40))) * _STEP)
        return words.reshape(-1, config.draws, 2)

    return give


def quick_map(config, seed=0):
    """Return a map with random numbers that are quick to draw."""
    return ObliviousMap(config, draws(config, seed), lambda keys: mix(keys, config.key_bits))


WORKLOADS = ("uniform", "same", "scan", "zipf", "burst", "churn")


def keys_of(workload, rng, count, universe):
    """Draw the keys of ``count`` operations from 0 ... ``universe`` - 1."""
    at = np.arange(count)
    if workload == "uniform":
        return rng.integers(universe, size=count)
    if workload == "same":
        return np.full(count, universe // 2)
    if workload == "scan":
        return at % universe
    if workload == "zipf":
        return np.minimum(rng.zipf(1.2, size=count) - 1, universe - 1)
    if workload == "burst":  # one key some times, then another
        return rng.integers(universe, size=count)[at // 7]
    if workload == "churn":  # deleted keys return
        return at // 2 % universe
    raise ValueError(workload)


def commands_of(workload, rng, count, config, universe=None, kinds=(1, 4, 5, 2)):
    """Draw operations: NOP, GET, PUT and DELETE as often as ``kinds`` says, some of them broken."""
    universe = universe or config.keys
    keys = keys_of(workload, rng, count, universe)
    codes = rng.choice(4, size=count, p=np.array(kinds) / sum(kinds))
    values = rng.bytes(count * config.value_bytes)
    size = config.value_bytes
    spread = mix(keys.astype(np.uint64) + np.uint64(7), config.key_bits).tolist()  # keys use all bits
    odd = rng.random(count)
    return [
        Command(
            code if odd[n] > 0.01 else 5 + code % 3,
            spread[n],
            values[n * size : (n + 1) * size],
            rejected=bool(0.01 <= odd[n] < 0.02),
        )
        for n, code in enumerate(codes.tolist())
    ]


def tensors_of(commands):
    """Return commands as tensors of a job."""
    values = b"".join(command.value for command in commands)
    return {
        "codes": np.array([command.code for command in commands], np.uint8),
        "keys": np.array([command.key for command in commands], np.uint64),
        "values": np.frombuffer(values, np.uint8).reshape(len(commands), -1),
        "rejected": np.array([command.rejected for command in commands]),
    }


def load_commands(config, count):
    """Load the keys 0 ... ``count`` - 1 of `commands_of`."""
    spread = mix(np.arange(count, dtype=np.uint64) + np.uint64(7), config.key_bits).tolist()
    return [Command(Code.LOAD, key, key.to_bytes(8, "little") * (config.value_bytes // 8)) for key in spread]


def answers(commands, config, known):
    """Return status, key and value of each command, as a dict has them; ``known`` is the dict, and
    changes.
    """
    zero = bytes(config.value_bytes)
    for code, key, value, rejected in commands:
        before = zero
        if rejected:
            yield Status.REJECTED, 0, zero
            continue
        if code == Code.NOP:
            status = Status.MISS
        elif code > Code.LOAD:
            status = Status.MALFORMED
        elif key in known:
            status = Status.DUPLICATE if code == Code.LOAD else Status.HIT
            before = zero if code == Code.LOAD else known[key]
            if code == Code.PUT:
                known[key] = value
            elif code == Code.DELETE:
                del known[key]
        elif code in (Code.PUT, Code.LOAD):
            full = len(known) == config.keys
            status = Status.FULL if full else Status.INSERTED
            if not full:
                known[key] = value
        else:
            status = Status.MISS
        yield status, key, before
