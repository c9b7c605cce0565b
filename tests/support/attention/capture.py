"""Attention inputs of the encoder all-MiniLM-L6-v2, and the small capture for tests::

python -m tests.support.attention.capture tests/data/minilm_layer0.npz
"""

import io
import sys
from pathlib import Path

import numpy as np

from sim.golden.minilm import EncoderRun, paragraph, softmax_attention
from sim.host.files import write_bytes

CAPTURED_HEADS = 4


def capture(text, layer=0):
    """Return q, k, v of ``layer`` on ``text``: float32 ``[12, tokens, 32]``, before any scaling."""
    encoder = EncoderRun(text)
    for _ in range(layer):
        encoder.take(softmax_attention(*encoder.qkv()))
    return {name: part.astype(np.float32) for name, part in zip("qkv", encoder.qkv(), strict=True)}


def small_capture():
    """Return the file of the first heads of layer 0 on the paragraph, in float16."""
    captured = capture(paragraph()["text"])
    file = io.BytesIO()
    np.savez_compressed(file, **{n: captured[n][:CAPTURED_HEADS].astype(np.float16) for n in "qkv"})
    return file.getvalue()


if __name__ == "__main__":
    write_bytes(Path(sys.argv[1]), small_capture())
