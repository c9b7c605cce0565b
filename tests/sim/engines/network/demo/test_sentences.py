"""The demo's sentences: their pairs, their ranks, and the page of a launch."""

import importlib.util
import re
from types import SimpleNamespace

import numpy as np
import pytest

from hw.board import load_board
from hw.network.model.layers import play
from hw.network.predict import predict
from sim.engines.network.adapter import ADAPTER, MODEL
from sim.engines.network.demo import encoder
from sim.engines.network.demo.demo import ATTENTION_ROWS, kernel_of
from sim.engines.network.demo.page import write_sentences
from sim.engines.network.minilm import CALIBRATION, PACKAGE
from sim.engines.network.sentences import likeness
from sim.golden import minilm
from tests.support.networks.signal_log import launch_report, write_log
from tests.support.pages.browser import drawn_page

BOARD = load_board("u55c")


def test_pairs_are_ranked_by_both():
    """Three vectors in a plane, at 0, 20 and 90 degrees; for the float model the last two are nearest."""
    found, exact = (
        np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)
        for angles in ((0, 20, 90), (0, 50, 90))
    )
    ranked = encoder.pairs(3 * found, exact)
    texts = encoder.texts()
    assert [pair.texts for pair in ranked] == [
        (texts[0], texts[1]),
        (texts[1], texts[2]),
        (texts[0], texts[2]),
    ]
    assert [pair.rank for pair in ranked] == [1, 2, 3]
    assert [pair.exact_rank for pair in ranked] == [2, 1, 3]
    assert [pair.found for pair in ranked] == pytest.approx(np.cos(np.radians([20, 70, 90])), abs=1e-9)
    # Of the last two: 70 and 40 degrees apart.
    assert encoder.largest_difference(ranked) == pytest.approx(
        np.cos(np.radians(40)) - np.cos(np.radians(70))
    )


def test_boards_with_room_have_the_attention_unit():
    assert [kernel_of(load_board(name)).attention_rows for name in ("u55c", "u280", "u50", "zcu104")] == [
        ATTENTION_ROWS,
        ATTENTION_ROWS,
        ATTENTION_ROWS,
        0,
    ]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Return the launch with the golden model's vectors and a log of predicted commands."""
    for module in (PACKAGE, minilm.PACKAGE, "safetensors", "tokenizers"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    config = kernel_of(BOARD)
    job = ADAPTER.job(encoder.tensors(MODEL), config)
    golden = ADAPTER.golden(job, config)
    path = tmp_path_factory.mktemp("log") / "signals.log"
    cycles = write_log(path, job.program, config, BOARD)
    report = launch_report(job, config, BOARD, cycles)
    return SimpleNamespace(
        job=job,
        outputs=ADAPTER.results(job, config, golden),
        report=report,
        signals=path,
        bit_exact=True,
        config=config,
    )


@pytest.mark.soak
def test_sentences_calibrate_nothing_and_are_one_launch(done):
    calibrating = set(CALIBRATION.read_text("utf-8").splitlines())
    assert len(encoder.texts()) == encoder.COUNT
    assert not calibrating & set(encoder.texts())
    assert [list(each) for each in encoder.ids()] == [minilm.tokens(text) for text in encoder.texts()]
    assert next(iter(done.job.inputs.values())).size == sum(encoder.lengths())


def test_vectors_are_near_the_float_models(done):
    found = likeness(encoder.exact_vectors(), encoder.vectors(done))
    assert found.least > 0.995
    assert found.order_apart == 1
    ranked = encoder.pairs(encoder.vectors(done), encoder.exact_vectors())
    assert [pair.rank for pair in ranked[:3]] == [pair.exact_rank for pair in ranked[:3]]
    # Those that mean the same come before those that share words.
    meant = [{encoder.texts().index(text) for text in pair.texts} for pair in ranked[:3]]
    assert sorted(map(sorted, meant)) == [[0, 1], [3, 4], [6, 7]]


def test_the_demo_says_it_in_lines(done):
    first, second, *pairs = encoder.conclude(done, BOARD)
    cycles = play(done.job.program, done.config, BOARD).cycles
    assert f"{cycles:,} cycles for 8 sentences of 112 tokens" in first
    assert re.search(r"\d+ of 28 have the same rank, none is further off than 0\.0\d\d", second)
    assert len(pairs) == encoder.SHOWN
    assert all(text in pairs[0] for text in encoder.texts()[3:5])


@pytest.fixture(scope="module")
def page(done, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "sentences.html"
    write_sentences(done, done.config, BOARD, path)
    return path


def test_the_page_has_pairs_cycles_and_bytes(done, page):
    text = page.read_text()
    body = text[text.index("<body>") :]
    assert all(each in body for each in encoder.texts())
    rows = re.findall(r"<tr><td>(.*?)</td>(.*?)</tr>", body)
    cells = {name: re.findall(r"<td[^>]*>(.*?)</td>", rest) for name, rest in rows}
    prediction = predict(done.job.program, done.config, BOARD)
    weights = f"{prediction.read_bytes['weights']:,}"
    assert cells["weights read"] == [weights, "0", weights]
    for name in ("tensors read", "tensors written", "in all"):
        planned, beside, measured = (int(cell.replace(",", "")) for cell in cells[name])
        assert planned + beside == measured
    assert cells["attention"][0] == "attention unit"
    layers = [int(cell.replace(",", "")) for cell in cells["attention"][1:8]]
    assert sum(layers[:6]) == layers[6] > 0
    operators = re.findall(r"<tr><td>(node_view_\d+)</td>", body)
    assert len(operators) == minilm.LAYERS


def test_the_page_draws(page, tmp_path):
    drawn = drawn_page(page, tmp_path)
    assert drawn.count('class="main-svg"') >= 3
    for name in ("matrix array", "vector unit", "attention unit", "weights in", "tensors out", "layer 6"):
        assert name in drawn
