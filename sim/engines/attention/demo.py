"""The attention engine's demo: all layers of a real encoder, and the effect of rounding on its sentence."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hw.attention.config import AttentionConfig
from hw.launch import Tensors
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
    """Return all-MiniLM-L6-v2 on a paragraph: a launch for each layer, of all heads, in order."""
    paragraph = minilm.paragraph()
    run = EncoderDemo(paragraph["text"])
    count = len(minilm.tokens(paragraph["text"]))
    return Demo(
        title=f"every layer of all-MiniLM-L6-v2 reading {count} tokens of {paragraph['author']}",
        config=encoder_config(default),
        launches={name: run.launch(layer) for layer, name in enumerate(run.names)},
        conclude=run.conclude,
    )


class EncoderDemo:
    """The encoder on ``text``, with attention computed by launches, one for each layer."""

    names = tuple(f"layer {layer}" for layer in range(minilm.LAYERS))

    def __init__(self, text: str) -> None:
        self._text = text
        self._run = minilm.EncoderRun(text)

    def launch(self, layer: int) -> Callable[[Results], Tensors]:
        """Return the function from the results of a layer to the tensors of the next one."""

        def tensors(results: Results) -> Tensors:
            if layer:
                self._take(results, layer - 1)
            else:
                self._run = minilm.EncoderRun(self._text)
            return dict(zip("qkv", self._run.qkv(), strict=True))

        return tensors

    def cosine(self, results: Results) -> float:
        """Return the cosine of the embedding and that of exact attention, from the last layer's results."""
        self._take(results, minilm.LAYERS - 1)
        return float(self._run.sentence() @ minilm.embed(self._text))

    def conclude(self, results: Results) -> Sequence[str]:
        """Describe the distance of the sentence from that of exact attention."""
        cosine = self.cosine(results)
        what = "Sentence embedding with every head of every layer from the RTL"
        return [f"{what}: cosine {cosine:.6f} with the exact one."]

    def _take(self, results: Results, layer: int) -> None:
        self._run.take(np.asarray(results[self.names[layer]].outputs["o"], np.float64))
