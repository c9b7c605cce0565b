"""The files a user gives an engine: tensors, and what engines read in forms of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.launch import Tensor
from sim.host.paths import check_readable
from sim.run.adapter import NETWORK, PLAN, EngineAdapter
from sim.run.tensors import load_tensors


@dataclass(frozen=True, kw_only=True)
class Given:
    """Files by their option; each may be left out."""

    input: Path | None = None  #: Tensors, .npz.
    plan: Path | None = None  #: A plan, .json, for an engine that executes plans.
    network: Path | None = None  #: A table of layers, .csv, for an engine that runs such.
    ops: Path | None = None  #: Operations, .csv, for an engine that does such.

    @property
    def paths(self) -> Mapping[str, Path]:
        """Those that are given, by option without its dashes."""
        return {name: path for name, path in vars(self).items() if path is not None}

    def read(self, adapter: EngineAdapter, config: Any, *, seed: int) -> dict[str, Tensor]:
        """Return the tensors of all files, as `EngineAdapter.job` takes them; ``seed`` is the run's.

        Raises `InputError` when a file cannot be read, or is nothing the engine can use.
        """
        tensors = dict(load_tensors(self.input)) if self.input is not None else {}
        if self.plan is not None:
            check_readable("--plan", self.plan)
            tensors[PLAN] = adapter.read_plan(self.plan)
        if self.network is not None:
            check_readable("--network", self.network)
            tensors[NETWORK] = adapter.read_network(self.network)
        if self.ops is not None:
            tensors |= adapter.read_operations(self.ops, config, seed=seed)
        return tensors
