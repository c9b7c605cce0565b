"""The log of a kernel's signals: spans, pulses, and files that are none."""

import numpy as np
import pytest

from hw.errors import InputError
from sim.run.signals import cycles_in, read_signals

NAMES = ("a", "b", "c")


def log(tmp_path, text):
    path = tmp_path / "signals.log"
    path.write_text(text)
    return read_signals(path, NAMES)


def test_spans_and_pulses_are_those_of_the_bits(tmp_path):
    """Beside a list of every cycle's bits, drawn at random."""
    rng = np.random.default_rng(0)
    bits = [0, *rng.integers(0, 8, 300).tolist(), 0]
    changes = [n for n in range(1, len(bits)) if bits[n] != bits[n - 1]]
    found = log(tmp_path, "".join(f"{n} {bits[n]}\n" for n in changes))
    for number, name in enumerate(NAMES):
        wanted = [n for n, word in enumerate(bits) if word >> number & 1]
        assert found.pulses(name).tolist() == wanted
    wanted = [n for n, word in enumerate(bits) if word & 0b111 == 0b101]
    spans = found.high("a", "c", low=("b",))
    assert cycles_in(spans).tolist() == wanted
    assert (spans[1:, 0] > spans[:-1, 1]).all()  # spans do not touch


def test_a_signal_that_never_rises_has_no_spans(tmp_path):
    found = log(tmp_path, "4 1\n5 0\n")
    assert found.high("b").shape == (0, 2)
    assert found.pulses("b").tolist() == []
    assert found.high("a").tolist() == [[4, 5]]


def test_a_span_that_does_not_end_is_left_out(tmp_path):
    assert log(tmp_path, "4 1\n5 0\n7 1\n9 3\n").high("a").tolist() == [[4, 5]]


def test_an_empty_log_has_no_spans(tmp_path):
    assert log(tmp_path, "").high("a").shape == (0, 2)


@pytest.mark.parametrize("text", ["1 2 3\n4\n", "one 2\n", "1\n2\n3\n"])
def test_another_file_is_refused(text, tmp_path):
    with pytest.raises(InputError, match="a cycle and a number in each line"):
        log(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="signals"):
        read_signals(tmp_path / "none.log", NAMES)
