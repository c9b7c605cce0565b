"""Damaged board files: each is one line of an error, or a board that every engine accepts or refuses."""

import copy
import random
from pathlib import Path

import pytest
import yaml

from hw.board.files import BOARDS, board_names, load_board
from hw.board.form import read_facts
from hw.config import check_fits
from hw.errors import InputError
from hw.registry import ENGINES, find_engine

#: Values of wrong types, and values at and beyond the ends of ranges.
_WRONG = (
    *(None, True, "", " ", "x\ny", [], [1], {}, {"value": 1}, {"value": None, "source": "parts"}),
    *(0, -1, 1, 3, 10**30, 1 << 70, 0.5, 1e308, 1e-300, "0 bit", "1 bit", "2048 bit", "0 beats", "1 B/s"),
    *("4096 B", "99999999999 GiB", f"1{'0' * 400} B", "0.001 kHz", "9 GHz", "R", "G1 R", "C5", "R G1"),
    *("hbm2", "ddr4", "lpddr4", "host", "axi3", "axi4", "zynq", "alveo", "../x", "{value"),
)
_UNITS = ("bit", "beats", "B", "GiB", "MHz", "GHz", "GB/s", "ps", "ns")


def places(data, location=()):
    """Yield the location of every key."""
    for key, value in data.items():
        yield (*location, key)
        if isinstance(value, dict):
            yield from places(value, (*location, key))


def other(rng, old):
    """Return another value, mostly one of the same form."""
    if isinstance(old, str) and old[:1].isdigit() and rng.random() < 0.7:
        number = rng.choice(("0.0001", "1", "16", "64", "512", "4096", "1000000", f"1{'0' * 12}"))
        return f"{number} {rng.choice((old.split()[-1], rng.choice(_UNITS)))}"
    if isinstance(old, int) and rng.random() < 0.7:
        return rng.choice((0, 1, 2, 3, 8, 100, 10**5, 10**12, 1 << 70, 2 * old, old // 2, -old))
    return copy.deepcopy(rng.choice(_WRONG))


def damage(rng, data):
    """Remove, add or replace one to four values."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        *parents, key = rng.choice([place for place in places(data) if place[0] != "sources"])
        part = data
        for step in parents:
            part = part[step]
        action = rng.random()
        if action < 0.15:
            del part[key]
        elif action < 0.25:
            part[rng.choice(("x", "value", "source", "timing", "", "a.b"))] = other(rng, 1)
        elif key != "source":
            part[key] = other(rng, part[key])
        elif action < 0.5:
            part[key] = rng.choice(_WRONG)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_file_is_one_error_or_a_board(tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "b.yaml"
    boards = {name: yaml.safe_load((BOARDS / f"{name}.yaml").read_text()) for name in board_names()}
    refused = []
    for _ in range(12):
        data = copy.deepcopy(boards[rng.choice(list(boards))])
        damage(rng, data)
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        try:
            check(path)
        except InputError as error:
            refused.append(str(error))
    assert refused
    assert all(message.startswith(f"{path}:") and "\n" not in message for message in refused)


def check(path: Path) -> None:
    """Load the file and ask every engine; engines may refuse the board, too."""
    board = load_board(str(path))
    assert read_facts(path)
    assert board.idle_read_cycles > 0
    assert board.path_budget_ps > 0
    for name in ENGINES:
        engine = find_engine(name)
        try:
            config = engine.default_config(board)
            check_fits(engine, config, board)
            engine.arguments(config, board)
            assert engine.regions(config, board)
        except InputError:
            continue
