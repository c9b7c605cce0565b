"""Models on tokens: sentences to the network for their lengths, and to its one input of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hw.errors import InputError
from hw.launch import Tensor, Tensors
from hw.network.driver.tensors import model_inputs
from hw.network.graph.network import Attention, Gather, Network
from hw.network.graph.transformer.network import MOST_TOKENS, read_tokens
from sim.engines.network.sentences import MASK, sentences_in

#: Tokens of the sentence that is drawn for a model without an input.
_DRAWN = 32


@dataclass(frozen=True, kw_only=True)
class TokenModel:
    """A model on tokens, whose network depends on the lengths of sentences."""

    path: Path

    def network(self, tensors: Tensors) -> Network:
        """Return the network for the sentences of an input, or for one that is drawn."""
        names = [name for name in tensors if name != MASK and np.asarray(tensors[name]).ndim == 2]
        if not names:
            return read_tokens(self.path, [_DRAWN])
        found = sentences_in(tensors, names[0], longest=MOST_TOKENS)
        return read_tokens(self.path, [len(each) for each in found])


def packed_inputs(network: Network, tensors: Tensors) -> dict[str, Tensor]:
    """Return a user's tensors with sentences one behind the other, as the network takes them.

    Those of other networks, and numbers that are packed already, stay.

    Raises `InputError` for sentences of other lengths than the network's.
    """
    found = dict(tensors)
    segments = segments_of(network)
    for tensor in model_inputs(network):
        if network.values[tensor.value].bits < 32 or tensor.name not in found:
            continue
        if MASK not in found and np.asarray(found[tensor.name]).shape == tensor.shape:
            continue
        sentences = sentences_in(found, tensor.name, longest=MOST_TOKENS)
        lengths = tuple(len(each) for each in sentences)
        if lengths != segments:
            raise InputError(f"lengths of the sentences in {tensor.name!r}", lengths, f"{segments}")
        found.pop(MASK, None)
        found[tensor.name] = np.concatenate(sentences)[np.newaxis]
    return found


def segments_of(network: Network) -> tuple[int, ...]:
    """Return the lengths of the sentences that a network is made for; empty for other networks."""
    for operator in network.operators:
        if isinstance(operator, Attention):
            return operator.segments
    return ()


def numbers_below(network: Network, name: str) -> int | None:
    """Return the rows of the smallest table that a value's numbers choose from; None without one."""
    rows = [
        len(each.table) for each in network.operators if isinstance(each, Gather) and each.inputs[0] == name
    ]
    return min(rows, default=None)


def parse_lengths(text: str) -> tuple[int, ...]:
    """Parse the lengths of sentences.

    >>> parse_lengths("17,40")
    (17, 40)
    """
    parts = text.split(",")
    if not all(each.isascii() and each.isdigit() for each in parts):
        raise InputError("--tokens", text, "whole numbers, such as 17,40: the tokens of each sentence")
    return tuple(map(int, parts))


def check_lengths(lengths: Sequence[int], *, on_tokens: bool) -> None:
    """Refuse lengths for a model on images, and a model on tokens without them."""
    if lengths and not on_tokens:
        raise InputError("--tokens", ",".join(map(str, lengths)), "left out: the model takes no tokens")
    if on_tokens and not lengths:
        raise InputError("--tokens", "left out", "the tokens of each sentence, such as 17,40")
