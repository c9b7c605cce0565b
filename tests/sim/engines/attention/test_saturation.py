"""Shares of logits and results that saturate, beside each of them worked out alone."""

import numpy as np
import pytest

from sim.cli.simulate import print_result
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.cases import SMALL
from sim.engines.attention.saturation import saturation
from sim.golden.attention.exact import attention_float64
from sim.run.result import RunResult
from tests.support.attention.tensors import CONFIG, changed, floats
from tests.support.pages.reports import synthetic

INTEGERS = {name: np.random.default_rng(3).integers(-128, 128, (2, 9, 32)).astype(np.int8) for name in "qkv"}


def scales(q=0.02, k=0.02, v=0.02):
    return {"q_scale": np.array(q), "k_scale": np.array(k), "v_scale": np.array(v)}


@pytest.mark.parametrize("output", ["int8", "int16", "bfloat16"])
def test_nothing_saturates_in_the_formats_that_are_chosen(output):
    assert saturation(ADAPTER.job(floats(), changed(CONFIG, output=output))) == {}


@pytest.mark.parametrize(
    ("output", "given"),
    [
        ("int8", {"output_scale": np.array([0.004, 0.0008])}),
        ("int16", {"output_fraction": np.array([9, 12])}),
    ],
)
def test_results_beyond_their_format(output, given):
    config = changed(SMALL, output=output)
    job = ADAPTER.job(INTEGERS | scales() | given, config)
    step = given.get("output_scale", 0.02 * 2.0 ** -given.get("output_fraction", np.zeros(2)))
    values = [INTEGERS[name] * 0.02 for name in "qkv"]
    steps = attention_float64(*values, softmax_scale=32**-0.5) / step[:, None, None]
    most = 2 ** (7 if output == "int8" else 15)
    beyond = np.mean((np.floor(steps + 0.5) > most - 1) | (np.floor(steps + 0.5) < -most))
    assert 0 < beyond < 1
    assert saturation(job) == {"saturated_results_ratio": pytest.approx(beyond)}
    o = ADAPTER.golden(job, config)["o"]
    assert np.mean((o == most - 1) | (o == -most)) >= beyond
    assert ADAPTER.errors(job, config, {"o": o})["saturated_results_ratio"] == pytest.approx(beyond)


def test_zeros_behind_rows_are_no_results():
    def share(size):
        given = {name: tensor[..., :size] if name == "v" else tensor for name, tensor in INTEGERS.items()}
        job = ADAPTER.job(given | scales() | {"output_scale": np.array(1e-6)}, changed(SMALL, output="int8"))
        return saturation(job)["saturated_results_ratio"]

    assert min(share(32), share(23)) > 0.99


def test_logits_beyond_their_format():
    job = ADAPTER.job(INTEGERS | scales(q=1.0, k=1.0) | {"causal": np.array(True)}, SMALL)
    scale = job.pieces[0].integers.scale
    seen = beyond = 0
    for head in range(2):
        for query in range(9):
            for key in range(query + 1):
                q, k = INTEGERS["q"][head, query].tolist(), INTEGERS["k"][head, key].tolist()
                score = sum(a * b for a, b in zip(q, k, strict=True))
                logit = (score * scale.multiplier + (1 << scale.shift - 1)) >> scale.shift
                seen += 1
                beyond += not -(2**23) <= logit < 2**23
    assert 0 < beyond < seen
    assert saturation(job)["saturated_logits_ratio"] == pytest.approx(beyond / seen)
    capped = ADAPTER.job(INTEGERS | scales(q=1.0, k=1.0) | {"logit_cap": np.array(30.0)}, SMALL)
    assert "saturated_logits_ratio" not in saturation(capped)


def test_inputs_beyond_their_given_steps():
    """Of what queries read, and of the tensors whose steps were given: q and half of the keys here."""
    tensors = floats(heads=2, kv_heads=2, queries=5, keys=40) | {
        "causal": np.array(1),
        "window": np.array(16),
    }
    tensors["k"][:, :20] = 1e6  # left of the window of the first query
    given = {"q_scale": np.array([0.005, 0.01]), "k_scale": np.array(0.02)}
    beyond = count = 0
    for name, first, steps in (("q", 0, [0.005, 0.01]), ("k", 20, [0.02, 0.02])):
        for head, step in enumerate(steps):
            found = [round(x / step) for x in tensors[name][head, first:].reshape(-1).tolist()]
            beyond += sum(not -128 <= x <= 127 for x in found)
            count += len(found)
    job = ADAPTER.job(tensors | given, CONFIG)
    assert 0 < beyond < count
    assert saturation(job) == {"saturated_inputs_ratio": pytest.approx(beyond / count)}
    assert saturation(ADAPTER.job(tensors | {"q_scale": np.array(0.5)}, CONFIG)) == {}


def test_users_are_warned(capsys):
    report = synthetic(errors={"saturated_results_ratio": 0.125, "relative_rms_error_int8_inputs": 0.9})
    print_result(RunResult(outputs={}, integers={}, golden={}, job=None, mismatches=(), measured=report), [])
    where = f"docs/{report.engine}.md lists the formats that have room"
    assert capsys.readouterr().err == f"loomwork: warning: 12.50% of the results saturated; {where}\n"
