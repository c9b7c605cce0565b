"""Models on tokens: sentences of a user become the network for their lengths and its packed input."""

import re
from pathlib import Path

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.config import NetworkConfig
from hw.network.graph.transformer.writer import written
from hw.network.program.barriers import is_barriers
from sim.engines.network.adapter import ADAPTER
from sim.engines.network.build_folder import read_build
from sim.engines.network.token_inputs import TokenModel, parse_lengths
from tests.support.command_line import call, refused
from tests.support.networks.sentences import small

CONFIG = NetworkConfig(attention_rows=2, attention_tokens=32, scratchpad_bytes=1 << 18, banks=4)
IDS = np.array([[3, 1, 4, 1, 5, 9], [2, 6, 5, 0, 0, 0]])
MASK = np.array([[1] * 6, [1] * 3 + [0] * 3])


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("small.onnx")
    path.write_bytes(written(small("mask", "heads")))
    return path


def job(model, **tensors):
    given = ADAPTER.read_files({"model": model}, CONFIG, seed=0) | tensors
    return ADAPTER.job(given, CONFIG)


def test_sentences_are_packed(model):
    """The network is made for their lengths; a sentence's vectors are those that it has alone."""
    made = job(model, input_ids=IDS, attention_mask=MASK)
    ((name, numbers),) = made.inputs.items()
    assert (name, numbers.dtype) == ("input_ids", np.int32)
    assert numbers.reshape(-1).tolist() == [3, 1, 4, 1, 5, 9, 2, 6, 5]
    golden = ADAPTER.golden(made, CONFIG)
    alone = ADAPTER.golden(job(model, input_ids=IDS[1:, :3]), CONFIG)
    (output,) = made.network.outputs
    assert (golden[output][:, 6:] == alone[output]).all()
    assert golden[output].any()


def test_the_program_overlaps_and_its_numbers_choose_rows(model):
    made = job(model, seed=np.asarray(1))
    assert not is_barriers(made.program)
    (transfer,) = (each for each in made.program.reads if each.gathered)
    assert transfer.gathered.rows == 32
    numbers = made.inputs["input_ids"]
    assert 0 <= numbers.min() < numbers.max() < 50


@pytest.mark.parametrize(
    "tensors",
    [
        {"input_ids": IDS.astype(np.float32)},
        {"input_ids": IDS + 50},
        {"input_ids": IDS, "attention_mask": MASK[:, ::-1]},
        {"input_ids": IDS, "other": MASK},
    ],
)
def test_refused(model, tensors):
    with pytest.raises(InputError):
        job(model, **tensors)


def test_a_build_has_the_lengths_of_its_sentences(model):
    Path("small.yaml").write_text("attention_rows: 2\nattention_tokens: 16\n")
    said = call("compile", model, "--config", "small.yaml", "--tokens", "6,3", "-o", "build").stdout
    # Products of queries, keys and values are one command's, under all three names.
    assert re.search(r"^ *Add_\d+ Add_\d+ Add_\d+ +conv ", said, re.MULTILINE)
    assert re.search(r"^ *Reshape_\d+ +attention ", said, re.MULTILINE)
    assert not re.search(r" copy ", said)
    build = read_build(Path("build"))
    given = ADAPTER.read_files({"build": Path("build")}, build.config, seed=0)
    made = ADAPTER.job({**given, "input_ids": IDS, "attention_mask": MASK}, build.config)
    assert made.inputs["input_ids"].reshape(-1).tolist() == [3, 1, 4, 1, 5, 9, 2, 6, 5]
    assert ADAPTER.label(made, build.config) == f"{made.network.name}, 6 + 3 tokens"
    with pytest.raises(InputError, match="lengths of the sentences"):
        ADAPTER.job({**given, "input_ids": IDS}, build.config)


def test_a_kernel_without_the_attention_unit_is_refused(model):
    assert "attention_rows must be at least 1" in refused("compile", model, "--tokens", "6", "-o", "build")
    assert not Path("build").exists()
    given = ADAPTER.read_files({"model": model}, NetworkConfig(), seed=0)
    with pytest.raises(InputError, match="attention_rows"):
        ADAPTER.job(given | {"input_ids": IDS[:1]}, NetworkConfig())


def test_a_prediction_prints_the_length_that_it_assumes(model):
    Path("small.yaml").write_text("attention_rows: 2\nattention_tokens: 32\n")
    said = call("predict", "network", "--model", model, "--config", "small.yaml").stdout
    assert said.startswith("small, 32 tokens\n")


def test_compile_needs_the_lengths(model):
    assert "--tokens" in refused("compile", model, "-o", "build")
    assert "whole numbers" in refused("compile", model, "--tokens", "6;3", "-o", "build")
    with pytest.raises(InputError):
        parse_lengths("")


def test_a_model_is_read_when_its_sentences_are_known(model):
    (found,) = ADAPTER.read_files({"model": model}, CONFIG, seed=0).values()
    assert found.item() == TokenModel(path=model)
