"""Golden model of a program's operators: the content of every tensor, from the dataflow alone.

It uses no scratchpad address, no transfer and no order other than that of calls: see
`hw.scheduler.program.dataflow`. The function of an operator is the traffic engine's of ``docs/scheduler.md``,
solved for all words at once.  Let ``R`` rotate the word by one lane, and each lane by `ROTATION` bits.  Then
the digest is

    s[k] = R^k ( s[0] ^ y[0] ^ ... ^ y[k-1] ),   y[j] = R^-(j+1) ( w[j] + G * (j + 1) )

because ``R`` permutes bits and so distributes over the exclusive or.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.program.dataflow import Dataflow

#: Constants of the function, as ``docs/scheduler.md`` defines it.
LANE_BITS, ROTATION = 32, 7
POSITION_STEP, OUTPUT_STEP = 0x9E3779B9, 0x85EBCA6B
#: Words, a row each, of 32-bit lanes.
Words = NDArray[np.uint32]
_LANE_BYTES = LANE_BITS // 8
#: Words processed at a time, so that large tensors need no large scratch arrays.
_BLOCK_WORDS = 2**16


def to_words(content: NDArray[np.uint8], word_bytes: int) -> Words:
    """Split bytes into words; the last one is padded with zeros."""
    words = -(-content.size // word_bytes)
    padded = np.zeros(words * word_bytes, np.uint8)
    padded[: content.size] = content
    return padded.view("<u4").astype(np.uint32).reshape(words, word_bytes // _LANE_BYTES)


def to_bytes(words: Words) -> NDArray[np.uint8]:
    """Undo `to_words`, padding included."""
    return np.ascontiguousarray(words.astype("<u4")).view(np.uint8).reshape(-1)


def operator_words(operator: int, inputs: Sequence[Words], lengths: Sequence[int], lanes: int) -> list[Words]:
    """Compute the outputs of an operator from its number and its inputs in order.

    ``lengths``: words of each output. ``lanes``: lanes of a word.
    """
    taken = sum(len(words) for words in inputs)
    made = sum(lengths)
    constants = (np.arange(1, lanes + 1, dtype=np.uint64) * np.uint64(POSITION_STEP)).astype(np.uint32)
    # For each output word, the count of inputs its digest covers, and the key added to it.
    seen = -(-np.arange(1, made + 1, dtype=np.int64) * taken // made)
    keys = np.concatenate(
        [_keys(operator << 16 | output, length) for output, length in enumerate(lengths)] or [constants[:0]]
    )
    out = np.empty((made, lanes), np.uint32)
    start = constants + np.uint32(operator)
    first = int(np.searchsorted(seen, 0, side="right"))
    out[:first] = start  # words before the first input
    done = 0
    for block in _blocks(inputs):
        digests = _digests(start, block, done)
        last = int(np.searchsorted(seen, done + len(block), side="right"))
        out[first:last] = digests[seen[first:last] - done - 1]
        start, first, done = digests[-1], last, done + len(block)
    out = (out ^ constants) + keys[:, None]
    return np.split(out, np.cumsum(lengths)[:-1])


def execute(dataflow: Dataflow, sources: Mapping[str, Words], word_bytes: int) -> dict[str, Words]:
    """Execute all calls on the sources, and return the saved tensors."""
    tensors, lanes = dataflow.tensors, word_bytes // _LANE_BYTES
    held = {index: sources[each.name] for index, each in enumerate(tensors) if each.off_chip_first}
    uses = Counter(index for call in dataflow.calls for index in call.inputs)
    saved = {}
    for call in dataflow.calls:
        lengths = [-(-tensors[index].size_bytes // word_bytes) for index in call.outputs]
        results = operator_words(call.operator, [held[index] for index in call.inputs], lengths, lanes)
        for index, words in zip(call.outputs, results, strict=True):
            held[index] = words
            if tensors[index].name in dataflow.homes:
                saved[tensors[index].name] = words
        uses.subtract(call.inputs)
        for index in (*call.inputs, *call.outputs):
            if not uses[index]:
                del held[index]
    return saved


def _keys(head: int, length: int) -> NDArray[np.uint32]:
    steps = np.arange(1, length + 1, dtype=np.uint64) * np.uint64(OUTPUT_STEP) + np.uint64(head)
    return steps.astype(np.uint32)


def _blocks(inputs: Sequence[Words]) -> Iterator[Words]:
    for words in inputs:
        for first in range(0, len(words), _BLOCK_WORDS):
            yield words[first : first + _BLOCK_WORDS]


def _digests(start: NDArray[np.uint32], block: Words, done: int) -> Words:
    """Return the digest after each word of a block; ``start`` is that after the ``done`` earlier words."""
    count = np.arange(1, len(block) + 1, dtype=np.int64)
    position = ((count + done) * POSITION_STEP).astype(np.uint32)
    turned = _turned(block + position[:, None], -count)
    return _turned(np.bitwise_xor.accumulate(turned, axis=0) ^ start, count)


def _turned(words: Words, times: NDArray[np.int64]) -> Words:
    """Return ``R^times`` of each word; negative is the inverse."""
    lanes = words.shape[1]
    moved = np.take_along_axis(words, (np.arange(lanes) + times[:, None]) % lanes, axis=1)
    left = (times * ROTATION % LANE_BITS).astype(np.uint32)[:, None]
    return moved << left | moved >> (LANE_BITS - left) % LANE_BITS
