"""Keys by which a host, if it could choose them, would stop the map; and commands that come late.

Keys are chosen with knowledge of the permutation: some share a bank of HBM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import COMMANDS
from hw.oram.movers.timing import PathTiming
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.job import OramJob, simulation_secrets
from sim.golden.oram.front import map_keys, permute
from sim.run.adapter import FaultyLaunch, Tamper
from tests.support.oram.bucket_traffic import BYTES, PAIR_SHIFT, PAIRS, bin_of

Keys = NDArray[np.uint64]
#: The seed whose permutation the keys are for.
SEED = 7
#: Commands that come late begin a group, whatever its size.
GROUP = 16
#: Keys drawn for the sets that share a bin.
_DRAWN = 2560
#: Bits of a bucket's offset from its port's base that are not its row.
_ROW_SHIFT = PAIR_SHIFT + PAIRS.bit_length() - 1


@dataclass(frozen=True)
class Attacker:
    """Draws keys for attacks on a map."""

    config: OramConfig
    rng: np.random.Generator

    def draw(self, count: int) -> Keys:
        """Return random keys."""
        return self.rng.integers(1 << self.config.key_bits - 1, size=count, dtype=np.uint64)

    def _buckets(self, keys: Keys) -> Keys:
        """Return the bucket of each key in table 0."""
        secrets = simulation_secrets(SEED)
        own = map_keys(secrets.seed, secrets.epoch).permutation
        return permute(own, keys, key_bits=self.config.key_bits) & np.uint64(self.config.buckets - 1)

    def banks(self, count: int) -> list[Keys]:
        """Return random keys by the bin of HBM that has their bucket of table 0."""
        keys = self.draw(count)
        of = [bin_of(bucket, self._ports) for bucket in self._buckets(keys).tolist()]
        return [keys[[one == place for one in of]] for place in sorted(set(of))]

    @property
    def _ports(self) -> int:
        return self.config.position_ports // 2

    def one(self, operations: int) -> Keys:
        """Return one key."""
        return np.repeat(self.draw(1), operations)

    def pairs(self, operations: int, pairs: int = 1) -> Keys:
        """Return pairs of keys in two rows of one bin, one after the other; a pair's keys alternate."""
        banks = self.banks(_DRAWN)
        drawn = [self._pair(banks[n % len(banks)]) for n in range(pairs)]
        return np.concatenate([np.resize(pair, -(-operations // pairs)) for pair in drawn])[:operations]

    def _pair(self, bank: Keys) -> Keys:
        keys = self.rng.permutation(bank)
        rows = self._buckets(keys) // np.uint64(self._ports) * np.uint64(BYTES) >> np.uint64(_ROW_SHIFT)
        return keys[[0, np.flatnonzero(rows != rows[0])[0]]]

    def bank(self, operations: int, count: int) -> Keys:
        """Return ``count`` keys of one bin, again and again."""
        keys = max(self.banks(_DRAWN), key=len)
        assert len(keys) >= count
        return np.resize(keys[:count], operations)

    def scan(self, operations: int, count: int) -> Keys:
        """Return ``count`` keys, again and again."""
        return np.resize(self.draw(count), operations)

    def zipf(self, operations: int, count: int) -> Keys:
        """Return random ones of ``count`` keys, a few of them often."""
        ranks = np.minimum(self.rng.zipf(1.2, size=operations), count) - 1
        return self.draw(count)[ranks]

    def job(self, bursts: Sequence[Keys], *, absent: int = 0) -> OramJob:
        """Return a job on an empty map: all codes, but GETs alone in the last ``absent`` bursts."""
        given = np.concatenate(bursts)
        codes = self.rng.choice([Code.GET, Code.PUT, Code.DELETE], len(given), p=[0.45, 0.47, 0.08])
        codes[len(given) - sum(len(keys) for keys in bursts[len(bursts) - absent :]) :] = Code.GET
        values = self.rng.integers(256, size=(len(given), self.config.value_bytes), dtype=np.uint8)
        tensors = {
            "codes": codes,
            "keys": given,
            "values": values,
            "seed": np.array(SEED),
        }
        return ADAPTER.job(tensors, self.config)


@dataclass(frozen=True)
class Late:
    """A launch in which some commands are written only when the map is at rest.

    ``late``: their numbers, multiples of `GROUP`, so far apart that none is read with an earlier one.
    Commands behind one are written before it.
    """

    job: OramJob
    late: Sequence[int]

    def launch(self, board) -> FaultyLaunch:
        """Return the launch."""
        config = self.job.config
        assert not any(number % GROUP for number in self.late)
        assert all(np.diff(self.late) > config.command_records)
        one = ADAPTER.launch(self.job, config, board)
        commands, *others = one.buffers
        records = commands.data.reshape(-1, config.command_bytes).copy()
        records[list(self.late), 0] ^= 1
        at = [number * config.command_bytes for number in self.late]
        timing = PathTiming(config)
        # From the read of an unwritten command: earlier operations, their writes, and the host's answers.
        rest = timing.position + timing.touch + 2 * timing.rest
        return replace(
            one,
            scalars=one.scalars | {"poll_cycles": rest},
            buffers=(replace(commands, data=records.reshape(-1), output=True), *others),
            tampers=tuple(Tamper(COMMANDS, place, 1, place, place, 1, 1) for place in at),
        )

    def looks(self) -> Iterator[bool]:
        """Yield for each look at a command whether it is written."""
        for number in range(len(self.job.operations)):
            if number in self.late:
                yield False
            yield True
