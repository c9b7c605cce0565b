"""The command that compares predictions: its launches, its summary, its verdict; the soak runs it."""

import numpy as np
import pytest

from hw.errors import InputError
from sim.engines.attention import predictions
from sim.engines.attention.figures import CONFIGS
from sim.engines.attention.job import workload_of
from sim.engines.attention.predictions import Comparison, main, random_launch, summary
from sim.engines.attention.tensors import read_inputs


def compared(seed, predicted):
    return Comparison(seed=seed, text="a launch", cycles=1000, predicted=predicted)


def workload(seed):
    return workload_of(
        read_inputs(random_launch(np.random.default_rng(seed), CONFIGS["full"]), CONFIGS["full"])
    )


def test_launches_are_of_every_kind():
    found = [workload(seed) for seed in range(60)]
    assert workload(3) == found[3]
    assert any(each.queries == (1,) for each in found)
    assert any(each.queries == each.keys and each.queries[0] > 1 for each in found)
    assert any(len(each.queries) > 1 for each in found)
    assert any(each.kv_heads < each.heads and each.pack > 1 for each in found)
    assert any(each.query_size != each.value_size for each in found)
    assert any(each.causal for each in found)
    assert any(each.window for each in found)
    assert any(each.bitmaps for each in found)
    assert any(each.settings for each in found)
    lengths = [length for each in found for length in each.queries + each.keys]
    assert min(lengths) == 1
    assert 512 < max(lengths) < 1024


def test_summary():
    text = summary([compared(4, 1000), compared(5, 985), compared(6, 1040)])
    assert text == (
        "3 launches, 3,000 cycles: 1 exactly, the mean off by 1.83%, the worst +4.00% (seed 6); "
        "2 by more than 1%, 1 by more than 2%"
    )


@pytest.mark.parametrize(("predicted", "good", "shown"), [(1021, False, 1), (1020, True, 1), (1010, True, 0)])
def test_verdict(predicted, good, shown, monkeypatch, capsys):
    asked = []

    def compare(seeds):
        asked.extend(seeds)
        yield compared(7, predicted)

    monkeypatch.setattr(predictions, "compare", compare)
    assert main(["--seeds", "3", "--first", "7"]) == good
    assert asked == [7, 8, 9]
    assert len(capsys.readouterr().out.splitlines()) == shown + 1


@pytest.mark.parametrize(("words", "field"), [(["--seeds", "0"], "seeds"), (["--first", "-1"], "first")])
def test_no_seeds(words, field):
    with pytest.raises(InputError, match=field):
        main(words)
