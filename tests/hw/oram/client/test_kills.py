"""A client that is killed between and within commands loses nothing, and does and seals nothing twice."""

import json
import subprocess
import sys
from collections import defaultdict

import pytest

from tests.support.oram.lives import ITEMS, KEY_COUNT, call_of
from tests.support.processes import ROOT


@pytest.mark.parametrize(
    ("lives", "seed"), [(50, 1), *(pytest.param(300, seed, marks=pytest.mark.soak) for seed in range(2, 6))]
)
def test_a_killed_client_continues(lives, seed, tmp_path):
    command = [sys.executable, "-m", "tests.support.oram.lives", str(tmp_path), str(lives), str(seed)]
    subprocess.run(command, cwd=ROOT, check=True)
    results = [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    assert len(results) > lives / 5
    known = dict(ITEMS)
    for number, found in enumerate(results[:-1], 1):
        kind, items = call_of(number)
        assert found == [known[key].hex() if key in known else None for key in items], number
        if kind == "put":
            known |= items
        elif kind == "delete":
            known = {key: value for key, value in known.items() if key not in items}
    assert results[-1] == [known[key].hex() if key in known else None for key in range(KEY_COUNT)]

    texts, epochs, unanswered = defaultdict(list), [], []
    for line in (tmp_path / "sent").read_text().splitlines():
        match json.loads(line):
            case ["epoch", epoch]:
                epochs.append(epoch)
            case ["unanswered", count]:
                unanswered.append(count)
            case [epoch, number, text]:
                texts[epoch, number].append(text)
    assert len(set(epochs)) == len(epochs)
    assert all(len(set(sent)) == 1 for sent in texts.values())
    # Lives ended with commands that were not answered, and commands were rejected: the test met both.
    operations = sum(len(found) for found in results) + len(ITEMS)
    numbers = [number for epoch, number in texts if epoch == epochs[-1]]
    assert operations < len(numbers) == max(numbers) + 1
    assert sum(count > 0 for count in unanswered) > lives / 10
