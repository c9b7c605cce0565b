"""A sentence encoder's tensors through the attention engine's gates: a committed capture, and all of it."""

from pathlib import Path

import numpy as np
import pytest

from hw.board import load_board
from sim.engines.attention.cases import SMALL
from sim.golden import minilm
from sim.run.run import run

CAPTURE = Path(__file__).parents[1] / "data" / "minilm_layer0.npz"
BOARD = load_board("u55c")


@pytest.mark.soak
def test_minilm_heads_are_exact_and_near_float64(tmp_path):
    with np.load(CAPTURE) as capture:
        tensors = {name: capture[name] for name in capture}
    result = run("attention", SMALL, BOARD, tensors, memory_mode="model", directory=tmp_path)
    assert result.bit_exact, result.mismatches
    report = result.report
    assert report.errors["relative_rms_error_int8_inputs"] < 2e-4
    assert report.errors["relative_max_error_int8_inputs"] < 1e-3
    assert report.errors["relative_rms_error_given_inputs"] < 5e-2
    assert report.work.mac_utilization_ratio > 0.97
    assert report.prediction.predicted_read_error_bytes == 0
    assert report.prediction.predicted_write_error_bytes == 0
    assert abs(report.prediction.predicted_cycles_error_ratio) < 0.02


@pytest.mark.soak
def test_a_sentence_through_the_rtl_keeps_its_meaning(tmp_path):
    """Every head of every layer, each layer reading what the RTL made of the one before."""
    for module in (minilm.PACKAGE, "safetensors", "tokenizers"):
        pytest.importorskip(module)
    text = minilm.paragraph()["text"]
    encoder = minilm.EncoderRun(text)
    for _ in range(minilm.LAYERS):
        tensors = dict(zip("qkv", encoder.qkv(), strict=True))
        result = run("attention", SMALL, BOARD, tensors, memory_mode="model", directory=tmp_path)
        assert result.bit_exact, result.mismatches
        assert result.report.errors["relative_rms_error_int8_inputs"] < 2e-4
        encoder.take(np.asarray(result.outputs["o"], np.float64))
    assert 0.999 <= float(encoder.sentence() @ minilm.embed(text)) < 1
