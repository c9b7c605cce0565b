"""A sentence encoder's own tensors, from the committed capture, through the attention engine's gates."""

from pathlib import Path

import numpy as np

from hw.attention.config import AttentionConfig
from hw.board import load_board
from sim.run import run

CAPTURE = Path(__file__).parents[1] / "data" / "minilm_layer0.npz"

#: The small configuration of the regression, so that its built simulator serves here too.
CONFIG = AttentionConfig(rows=4, head_dim=32, tile_keys=16, ports_per_stream=1)


def test_minilm_heads_are_exact_and_near_float64(tmp_path):
    with np.load(CAPTURE) as capture:
        tensors = {name: capture[name] for name in capture}
    result = run("attention", CONFIG, load_board("u55c"), tensors, memory_mode="model", directory=tmp_path)
    assert result.bit_exact, result.mismatches
    report = result.report
    assert report.errors["relative_rms_error_int8_inputs"] < 2e-3
    assert report.errors["relative_max_error_int8_inputs"] < 5e-3
    assert report.errors["relative_rms_error_given_inputs"] < 5e-2
    assert report.work.mac_utilization_ratio > 0.97
    assert report.prediction.predicted_read_error_bytes == 0
    assert report.prediction.predicted_write_error_bytes == 0
    assert abs(report.prediction.predicted_cycles_error_ratio) < 0.05
