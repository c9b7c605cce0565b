"""A network whose attention is a launch of the attention engine, and what lies between launches.

The attention engine has its heads one behind the other, the array its tokens: the host takes the activations,
rearranges them and returns them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hw.board import Board
from hw.config import check_fits
from hw.launch import Tensors
from hw.network.graph.network import Attention, Network
from hw.registry import find_engine
from sim.engines.network.compare.ways import attentions
from sim.run.run import find_adapter

#: Name of the engine that computes attention.
ENGINE = "attention"
#: Seconds between a launch's cycles and its published time on a U280 under XRT: InTAR's artifact publishes
#: both, 10,295 cycles and 0.145 ms, 140,957 cycles and 0.582 ms, at 230 to 292 MHz.
PUBLISHED_LAUNCH_SECONDS = 1e-4


@dataclass(frozen=True, kw_only=True)
class Heads:
    """The attention of one operator."""

    heads: int
    size: int  #: Elements of a query, key and value.
    segments: tuple[int, ...]  #: Tokens of each sentence.
    causal: bool

    @classmethod
    def of(cls, network: Network, operator: Attention) -> Heads:
        """Return the shape of an operator."""
        channels = network.values[operator.output].shape[-1]
        return cls(
            heads=operator.heads,
            size=channels // operator.heads,
            segments=operator.segments,
            causal=operator.causal,
        )

    @property
    def name(self) -> str:
        """Words that differ where a launch does."""
        kind = ", causal" if self.causal else ""
        return f"attention of {'+'.join(map(str, self.segments))} tokens, {self.heads} x {self.size}{kind}"

    @property
    def tensor_bytes(self) -> int:
        """Bytes of the queries; keys, values and results have as many."""
        return sum(self.segments) * self.heads * self.size

    def tensors(self, seed: int) -> Tensors:
        """Return a launch's input, drawn integers."""
        rng = np.random.default_rng(seed)
        shape = (self.heads, sum(self.segments), self.size)
        found: dict[str, Any] = {name: rng.integers(-127, 128, shape, dtype=np.int8) for name in "qkv"}
        found |= {f"{name}_scale": np.array(1 / 32) for name in "qkv"}
        found["causal"] = np.array(int(self.causal))
        if len(self.segments) > 1:
            found["sequence_lengths"] = np.array(self.segments)
        return found

    def config(self, board: Board) -> Any:
        """Return the board's default engine with lanes for these heads, as many multipliers, and int8 out."""
        engine = find_engine(ENGINE)
        default: Any = engine.default_config(board)
        found = replace(
            default,
            lanes=self.size,
            rows=min(64, default.rows * default.lanes // self.size),
            folds=1,
            query_ports=math.gcd(default.query_ports, self.size // 16),
            result_ports=math.gcd(default.result_ports, self.size // 16),
            merge_lanes=min(default.merge_lanes, 1 << (self.size // 8).bit_length() - 1),
            output="int8",
            decode=False,
        )
        check_fits(engine, found, board)
        return found

    def multipliers(self, board: Board) -> int:
        """Return the multipliers of that engine."""
        config = self.config(board)
        return int(2 * config.rows * config.lanes * config.streams)

    def predicted(self, board: Board) -> tuple[int, int]:
        """Return the predicted cycles and bytes of a launch."""
        config, adapter = self.config(board), find_adapter(ENGINE)
        job = adapter.job(self.tensors(0), config)
        found = find_engine(ENGINE).predict(adapter.workload(job, config), config, board)
        return found.cycles_total, found.moved_bytes


def heads_of(network: Network) -> list[Heads]:
    """Return the attention of each operator of a network, in order."""
    return [Heads.of(network, operator) for operator in attentions(network)]


@dataclass(frozen=True, kw_only=True)
class Link:
    """Cycles at the board's clock that the host's link takes, by the figures of the board's file."""

    activations: int  #: Those of all attentions to the host and back.
    activation_bytes: int  #: Both ways.
    crossings: int  #: From a launch's end to the next one's start, all of them.
    crossing_cycles: int  #: Of all: the host reads a register, and writes one.


def link_of(shapes: list[Heads], launches: int, board: Board) -> Link | None:
    """Return what the host's link takes between ``launches``; None for a board without one."""
    if board.host is None:
        return None
    timing: Any = board.host.timing
    # Queries, keys and values go to the host and back, then the results; a transfer each.
    moved = sum(8 * each.tensor_bytes for each in shapes)
    waits = 2 * len(shapes) * (timing.idle_read_ns + timing.idle_write_ns)
    crossing = timing.idle_read_ns + timing.idle_write_ns
    crossings = launches - 1
    return Link(
        activations=round(board.cycles(1e9 * moved / timing.bytes_per_second + waits)),
        activation_bytes=moved,
        crossings=crossings,
        crossing_cycles=round(board.cycles(crossing * crossings)),
    )


def counted(shapes: list[Heads]) -> Mapping[str, tuple[Heads, int]]:
    """Return the shapes that differ, and how often each is launched, by their names."""
    names = [each.name for each in shapes]
    return {each.name: (each, names.count(each.name)) for each in shapes}
