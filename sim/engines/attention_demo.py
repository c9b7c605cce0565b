"""The attention engine's demo: layer 0 of a real encoder, and what the rounding does to its sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.attention.config import AttentionConfig
from sim import minilm
from sim.adapter import Demo, Tensor

if TYPE_CHECKING:
    from sim.report import Report

_GROUP_HEADS = 4
_WHOLE = "all heads"


def attention_demo(default: AttentionConfig) -> Demo:
    """Give layer 0 of all-MiniLM-L6-v2 on a paragraph: groups of heads, then all heads in one launch.

    Parameters
    ----------
    default
        The board's default configuration; its lanes are changed to the model's head size of 32.  Half the
        lanes need half the bytes a cycle, hence half the ports.
    """
    heads = minilm.capture(minilm.paragraph().text)
    size = heads["q"].shape[-1]
    ports = max(1, default.ports_per_stream * size // default.lanes)
    merge_lanes = max(1, default.merge_lanes * size // default.lanes, size // default.tile_keys)
    launches = {
        f"heads {first}-{first + _GROUP_HEADS - 1}": {
            name: part[first : first + _GROUP_HEADS] for name, part in heads.items()
        }
        for first in range(0, minilm.HEADS, _GROUP_HEADS)
    }
    paragraph = minilm.paragraph()
    return Demo(
        title=f"layer 0 of all-MiniLM-L6-v2 reading {heads['q'].shape[1]} tokens of {paragraph.author}",
        config=replace(default, lanes=size, folds=1, ports_per_stream=ports, merge_lanes=merge_lanes),
        launches={**launches, _WHOLE: heads},
        conclude=_conclude,
    )


def _conclude(results: Mapping[str, Mapping[str, Tensor]], reports: Mapping[str, Report]) -> Sequence[str]:
    """Embed the paragraph with the RTL's attention in layer 0 and compare with exact attention."""
    text = minilm.paragraph().text

    def attention(layer: int) -> Any:
        if layer:
            return minilm.softmax_attention
        return lambda q, k, v: np.asarray(results[_WHOLE]["o"], np.float64)

    cosine = float(minilm.embed(text, attention) @ minilm.embed(text))
    return [
        f"Sentence embedding with layer 0's attention from the RTL: cosine {cosine:.6f} with the exact one."
    ]
