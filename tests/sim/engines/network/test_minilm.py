"""all-MiniLM-L6-v2 with weights in int8 beside its float model: sentences that did not calibrate it."""

import pytest

from sim.engines.network.minilm import CALIBRATION, JUDGED, exact_vectors, model_file, tokenizer_file
from sim.engines.network.quantizing import CHOICES, quantized_vectors
from sim.engines.network.sentences import likeness, read_sentences
from sim.golden.minilm import tokens


def test_sentences_are_of_two_files_and_fit_the_tokenizer():
    calibrating, judged = (path.read_text("utf-8").splitlines() for path in (CALIBRATION, JUDGED))
    assert len(judged) == len(set(judged)) == 60
    assert not set(calibrating) & set(judged)
    read = read_sentences(JUDGED, tokenizer_file(), longest=64)
    assert [list(ids) for ids in read] == [tokens(line) for line in judged]


@pytest.mark.soak
def test_vectors_are_near_those_of_the_float_model():
    from hw.network.graph.transformer.quantize import measure

    calibrating, judged = (
        read_sentences(path, tokenizer_file(), longest=64) for path in (CALIBRATION, JUDGED)
    )
    made = measure(model_file(), calibrating, longest=512, mean=True)
    exact = exact_vectors(JUDGED)
    found = {title: likeness(exact, quantized_vectors(made, rule, judged)) for title, rule in CHOICES.items()}
    whole = found["all choices"]
    assert whole.mean > 0.9975
    assert whole.least > 0.9955
    assert whole.order > 0.97
    assert whole.order_apart > 0.995
    # Each choice is worth its place.
    assert all(whole.mean - each.mean > 0.001 for title, each in found.items() if title != "all choices")
    assert found["sums in 8 bits"].mean < 0.95
