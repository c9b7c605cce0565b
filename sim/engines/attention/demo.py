"""The attention engine's demo: all layers of a real encoder, and what the rounding does to its sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from hw.attention.config import AttentionConfig
from hw.launch import Tensor
from sim.golden import minilm
from sim.run.adapter import Demo, Results


def encoder_config(default: AttentionConfig) -> AttentionConfig:
    """Change a board's default configuration to the encoder's head size: one fold of 32 lanes.

    Half the lanes need half the bytes a cycle, hence half the ports.
    """
    size = minilm.HEAD_SIZE
    return replace(
        default,
        lanes=size,
        folds=1,
        ports_per_stream=max(1, default.ports_per_stream * size // default.lanes),
        merge_lanes=max(1, default.merge_lanes * size // default.lanes, size // default.tile_keys),
    )


def attention_demo(default: AttentionConfig) -> Demo:
    """Return all-MiniLM-L6-v2 on a paragraph: a launch a layer, of all heads, each after the one before."""
    paragraph = minilm.paragraph()
    walk = EncoderWalk(paragraph["text"])
    count = len(minilm.tokens(paragraph["text"]))
    return Demo(
        title=f"every layer of all-MiniLM-L6-v2 reading {count} tokens of {paragraph['author']}",
        config=encoder_config(default),
        launches={name: walk.launch(layer) for layer, name in enumerate(walk.names)},
        conclude=walk.conclude,
    )


class EncoderWalk:
    """The encoder reading ``text``, with its attention computed elsewhere, a launch a layer."""

    names = tuple(f"layer {layer}" for layer in range(minilm.LAYERS))

    def __init__(self, text: str) -> None:
        self._text = text
        self._walk = minilm.Walk(text)

    def launch(self, layer: int) -> Callable[[Results], Mapping[str, Tensor]]:
        """Return the function that makes the tensors of a layer from the results of the one before."""

        def tensors(results: Results) -> Mapping[str, Tensor]:
            if layer:
                self._take(results, layer - 1)
            else:
                self._walk = minilm.Walk(self._text)
            return dict(zip("qkv", self._walk.qkv(), strict=True))

        return tensors

    def cosine(self, results: Results) -> float:
        """Compare the embedding with that of exact attention, after the last layer's results."""
        self._take(results, minilm.LAYERS - 1)
        return float(self._walk.sentence() @ minilm.embed(self._text))

    def conclude(self, results: Results) -> Sequence[str]:
        """Say how far the sentence is from that of exact attention."""
        cosine = self.cosine(results)
        what = "Sentence embedding with every head of every layer from the RTL"
        return [f"{what}: cosine {cosine:.6f} with the exact one."]

    def _take(self, results: Results, layer: int) -> None:
        self._walk.take(np.asarray(results[self.names[layer]].outputs["o"], np.float64))
