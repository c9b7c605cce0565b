"""Operations of different kinds that look alike: keys are chosen by labels that the host does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from sim.engines.oram.job import simulation_secrets
from sim.golden.oram.front import map_keys
from sim.golden.oram.map import Command, keyed_map
from tests.support.oram.workloads import load_commands, mix


class Part(NamedTuple):
    """Consecutive operations; those of parts of equal ``group`` touch the same pages."""

    name: str
    group: int
    operations: int


class Alike:
    """A map with the keys 0 ... ``loaded`` - 1 of `load_commands`, and parts of operations on it.

    ``seed``: of the session; not every one has fitting keys. ``exact``: launches of a group touch the same
    pages. Otherwise they touch pages in the same operations, and no page twice.
    """

    def __init__(self, config: OramConfig, seed: int, *, loaded: int, exact: bool) -> None:
        self._config, self._rng, self._exact = config, np.random.default_rng(seed), exact
        secrets = simulation_secrets(seed)
        keys = map_keys(secrets.seed, secrets.epoch)
        self._state = keyed_map(config, permutation_key=keys.permutation, draw_key=keys.draw)
        self.commands = load_commands(config, loaded)
        self._state.run(self.commands)
        self.parts = [Part("loaded", 0, loaded)]
        self._known = [command.key for command in self.commands]
        self._strange = 1 << 20  # of `mix`: no key of the map
        self._pages: list[tuple[int, ...]] = []

    def begin(self, name: str, codes: Iterable[int], *, hot: bool = False) -> None:
        """Add a part that begins a group: operations on new keys, or on one known key."""
        codes = list(codes)
        one = self._known[int(self._rng.integers(len(self._known)))]
        keys = [one if hot else self._new() for _ in codes]
        outcomes = self._run([self._command(code, key) for code, key in zip(codes, keys, strict=True)])
        self._pages = [tuple(outcome.pages) for outcome in outcomes]
        touched = [page for pages in self._pages for page in pages]
        assert self._exact or len(set(touched)) == len(touched), "choose another seed"
        self._known += [] if hot else [key for code, key in zip(codes, keys, strict=True) if code == Code.PUT]
        self.parts.append(Part(name, self.parts[-1].group + 1, len(codes)))

    def follow(self, name: str, codes: Iterable[int]) -> None:
        """Add a part of the same group: each operation is on a known key whose page is that of the first
        part's, if possible on one that this part did not use.
        """
        used: set[int] = set()
        touched: set[tuple[int, ...]] = set()
        codes = list(codes)
        for code, pages in zip(codes, self._pages, strict=True):
            fitting = [key for key in self._known if self._fits(key, pages, touched)]
            assert fitting, "choose another seed"
            key = min(fitting, key=lambda one: (one in used, self._rng.random()))
            used.add(key)
            (outcome,) = self._run([self._command(code, key)])
            touched.add(tuple(outcome.pages))
            if code == Code.DELETE:
                self._known.remove(key)
        self.parts.append(Part(name, self.parts[-1].group, len(codes)))

    def _fits(self, key: int, pages: tuple[int, ...], touched: set[tuple[int, ...]]) -> bool:
        (record,) = self._state.position.entries[self._state.permuted([key])[0]].records
        own = (record,) if record < self._config.host_pages else ()
        return own == pages if self._exact else len(own) == len(pages) and (not own or own not in touched)

    def _new(self) -> int:
        self._strange += 1
        return int(mix([self._strange], self._config.key_bits)[0])

    def _command(self, code: int, key: int) -> Command:
        return Command(code, key, self._rng.bytes(self._config.value_bytes))

    def _run(self, commands):
        self.commands += commands
        return self._state.run(commands)
