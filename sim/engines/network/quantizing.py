"""``loomwork quantize`` of a transformer: the file, and the accuracy that each choice of the rule costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from hw.network.graph.transformer.blocks import First
from hw.network.graph.transformer.quantize import Measured, measure
from hw.network.graph.transformer.ranges import Ids, Runner
from hw.network.graph.transformer.rule import Rule
from sim.engines.network.sentences import APART, Likeness, likeness, packed, read_sentences
from sim.golden.network import execute
from sim.host.files import write_bytes
from sim.host.progress import ProgressLine

#: Rules by what they leave out.
CHOICES = {
    "all choices": Rule(),
    "one scale for a function's results": Rule(groups=False),
    "channels of products not equalized": Rule(equalize=0.0),
    "sums in 8 bits": Rule(residual_bits=8),
}


def quantize_sentences(
    model: Path,
    calibration: Path,
    output: Path,
    *,
    tokenizer: Path | None,
    judge: Path | None,
    mean: bool,
    first: bool,
    outputs: Sequence[str],
    longest: int,
) -> None:
    """Write the quantized model, and print its accuracy and what each choice adds to it.

    ``judge``: sentences to compare by; those of the calibration without it.  The other parameters are those
    of `read_sentences` and `measure`.
    """
    sentences = read_sentences(calibration, tokenizer, longest=longest)
    judged = read_sentences(judge, tokenizer, longest=longest) if judge else sentences
    pooling = {"mean": mean, "first": first}
    with ProgressLine("Measuring ranges"):
        made = measure(model, sentences, longest=longest, outputs=outputs, name=model.stem, **pooling)
    network = made.network(Rule(), [len(sentences[0])])
    write_bytes(output, made.file(Rule()))
    print(f"{output}: {len(network.operators)} operators, {network.weight_bytes} weight bytes")
    where = f"{len(judged)} sentences{'' if judge else ' of the calibration'}"
    print(f"Vectors beside the float model's, {where}.")
    print(f"  {'':36} cosine  least   order of pairs, of those {APART} apart")
    for title, found in costs(made, model, judged):
        print(
            f"  {title:36} {found.mean:.4f}  {found.least:.4f}  {found.order:.3f}  {found.order_apart:.3f}",
            flush=True,
        )


def costs(made: Measured, model: Path | bytes, judged: Sequence[Ids]) -> Iterator[tuple[str, Likeness]]:
    """Yield the accuracy of each rule of `CHOICES`, by its title."""
    exact = exact_vectors(made, model, judged)
    for title, rule in CHOICES.items():
        yield title, likeness(exact, quantized_vectors(made, rule, judged))


def exact_vectors(made: Measured, model: Path | bytes, judged: Sequence[Ids]) -> np.ndarray:
    """Return the float model's first output, a row for each sentence or each token."""
    blocks = made.blocks
    output, tensor = next(iter(blocks.outputs.items()))
    last = blocks.blocks[-1]
    added = tensor == last.output and tensor.endswith((":mean", ":first"))
    name = last.inputs[0] if added else output
    runner = Runner(model, [name])
    rows = [runner.run(ids, [name])[name] for ids in judged]
    if not added:
        return np.concatenate(rows)
    first = isinstance(last, First)
    return np.stack([each[0] if first else each.mean(axis=0) for each in rows])


def quantized_vectors(made: Measured, rule: Rule, judged: Sequence[Ids]) -> np.ndarray:
    """Return the quantized network's first output, likewise."""
    network = made.network(rule, [len(ids) for ids in judged])
    value = network.values[network.outputs[0]]
    stored = execute(network, {network.inputs[0]: packed(judged)})[value.name]
    return (stored[0].astype(np.float64) - value.zero) * value.scale
