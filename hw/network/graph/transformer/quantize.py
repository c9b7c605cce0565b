"""Quantizes a transformer: its blocks and ranges once, then as often as there are rules to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.network.graph.network import Network
from hw.network.graph.transformer.blocks import Blocks, pooled
from hw.network.graph.transformer.network import network_of
from hw.network.graph.transformer.ranges import Ids, Range, measured
from hw.network.graph.transformer.reader import read_blocks
from hw.network.graph.transformer.rule import Rule, quantized
from hw.network.graph.transformer.writer import written


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """A float model, and the ranges of its tensors."""

    blocks: Blocks
    ranges: Mapping[str, Range]

    def network(self, rule: Rule, segments: Sequence[int]) -> Network:
        """Return the quantized network for sentences of these lengths."""
        return network_of(quantized(self.blocks, self.ranges, rule), segments)

    def file(self, rule: Rule) -> bytes:
        """Return the quantized model's file."""
        return written(quantized(self.blocks, self.ranges, rule))


def measure(
    source: Path | bytes,
    sentences: Sequence[Ids],
    *,
    longest: int,
    mean: bool = False,
    first: bool = False,
    outputs: Sequence[str] = (),
    name: str = "",
) -> Measured:
    """Read a model, and measure its tensors on sentences.

    ``longest``: most tokens of a sentence that the quantized model takes. ``mean``, ``first``: the mean of
    the first output's tokens, or their first, is the only output. ``outputs``: the outputs to keep, all
    without it.

    Raises `InputError` as `read_blocks` does, and for a model that onnxruntime does not run.
    """
    blocks = read_blocks(source, tokens=longest, outputs=outputs, name=name)
    if mean or first:
        blocks = pooled(blocks, first=first)
    return Measured(blocks=blocks, ranges=measured(blocks, source, sentences))
