"""``loomwork quantize`` of a model on tokens: the file, the accuracy of each choice, what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest

from hw.network.graph.transformer.network import read_tokens
from sim.engines.network.quantizing import CHOICES
from sim.engines.network.sentences import likeness, read_sentences
from tests.support.command_line import call, refused
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import drawn
from tests.support.networks.sentences import POSITIONS, ROWS, model, sentences

_TEXT = "the cat sat on the mat\n\na dog saw the cat\nthe mat the dog sat on\na cat\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_bytes(model("mask", "heads", layers=2))
    (tmp_path / "copy.onnx").write_bytes(model())
    (tmp_path / "a.txt").write_text(_TEXT)
    (tmp_path / "copy.txt").write_text(_TEXT)
    words = {word: number for number, word in enumerate(sorted({"[UNK]", *_TEXT.split()}))}
    rule = {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}
    parts = {"pre_tokenizer": {"type": "Whitespace"}, "normalizer": None, "post_processor": None}
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "decoder": None}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**whole, **parts, "model": rule}))
    rows = np.zeros((12, 20), np.int64)
    mask = np.zeros_like(rows)
    for number, ids in enumerate(sentences(12)):
        rows[number, : len(ids)], mask[number, : len(ids)] = ids, 1
    np.savez("b.npz", input_ids=rows, attention_mask=mask)
    return tmp_path


def test_arrays_calibrate_and_text_judges():
    words = (
        "--calibration",
        "b.npz",
        "--judge",
        "a.txt",
        "--tokenizer",
        "tokenizer.json",
        "--longest",
        POSITIONS,
    )
    said = call("quantize", "net.onnx", *words, "--mean", "-o", "made.onnx").stdout.splitlines()
    assert said[0] == "made.onnx: 32 operators, 65536 weight bytes"
    assert said[1] == "Vectors beside the float model's, 4 sentences."
    found = {line[2:38].rstrip(): [float(each) for each in line[38:].split()] for line in said[3:]}
    assert list(found) == list(CHOICES)
    means = [numbers[0] for numbers in found.values()]
    assert 0.99 < means[0] <= 1
    assert means[-1] < means[0] - 0.001
    network = read_tokens(Path("made.onnx"), (3, 4))
    assert network.values[network.outputs[0]].shape == (1, 2, 64)


def test_tokens_are_an_output_without_a_mean():
    said = call("quantize", "net.onnx", "--calibration", "b.npz", "--longest", "30", "-o", "made.onnx").stdout
    assert "12 sentences of the calibration." in said


def test_text_is_cut_and_empty_lines_are_left_out(folder):
    found = read_sentences(folder / "a.txt", folder / "tokenizer.json", longest=4)
    assert [len(ids) for ids in found] == [4, 4, 4, 2]
    assert max(max(ids) for ids in found) < ROWS


def test_arrays_lose_what_the_mask_hides(folder):
    for mine, wanted in zip(read_sentences(folder / "b.npz", None, longest=18), sentences(12), strict=True):
        assert (mine == wanted[:18]).all()


def test_likeness_counts_pairs_that_keep_their_order():
    angles = np.array([0.0, 0.1, 0.5, 1.5])
    one = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    other = one[[0, 2, 1, 3]]
    found = likeness(one, other)
    assert found.least == pytest.approx(np.cos(0.4))
    assert found.order == pytest.approx(11 / 15)


def _words(**changed):
    kept = {
        "--calibration": "a.txt",
        "--tokenizer": "tokenizer.json",
        "-o": "made.onnx",
        "--longest": POSITIONS,
    }
    return [word for pair in {**kept, **changed}.items() for word in pair if pair[1] is not None]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (_words(**{"--tokenizer": None}), "--tokenizer must be the model's tokenizer.json: a.txt is text"),
        (_words(**{"--tokenizer": "copy.txt"}), "--tokenizer must be a tokenizer.json"),
        ([*_words(), "--mean", "--first"], "--first must be left out: --mean is the output"),
        (_words(**{"--longest": 41}), "tokens of a sentence must be as many as the model has rows for"),
        (_words(**{"--keep": "token"}), "output must be one of tokens"),
        (_words(**{"--form": "qoperator"}), "--form or --unsigned must be left out: the model takes tokens"),
        (_words(**{"--calibration": "copy.onnx"}), "sentences must be text in UTF-8"),
    ],
)
def test_what_cannot_be_quantized_is_refused_in_one_line(folder, words, message):
    assert message in refused("quantize", "net.onnx", *words)
    assert not (folder / "made.onnx").exists()


def test_the_first_token_is_the_output():
    said = call("quantize", "net.onnx", *_words(), "--first").stdout.splitlines()
    (likenesses,) = (line for line in said if line.strip().startswith("all choices"))
    assert float(likenesses.split()[2]) > 0.99
    network = read_tokens(Path("made.onnx"), (3, 4))
    assert network.operators[-1].first
    assert network.values[network.outputs[0]].shape == (1, 2, 64)


def test_numbers_beyond_the_table_are_refused():
    np.savez("c.npz", input_ids=np.full((2, 4), ROWS))
    line = refused("quantize", "net.onnx", *_words(**{"--calibration": "c.npz", "--tokenizer": None}))
    assert line == f"number of a token must be from 0 to {ROWS - 1}, not {ROWS}"


def test_an_image_takes_no_sentences(folder):
    net = Builder("net")
    net.output(net.conv(net.input("image", 1, 3, 8, 8), 4, name="conv", kernel=3))
    (folder / "image.onnx").write_bytes(drawn(net.model()))
    assert "left out: the model takes no tokens" in refused("quantize", "image.onnx", *_words())
