"""The notebook and the tutorial do what they say: every cell and every command is run, in order."""

import json
import re
import shlex
from pathlib import Path

import pytest

from hw.board import load_board
from hw.config import load_config
from hw.registry import find_engine
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.attention.cases import SMALL
from tests.support.command_line import call

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)(?: title=\"(.*?)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too


@pytest.mark.soak
def test_the_notebook():
    notebook = json.loads((ROOT / "examples" / "attention.ipynb").read_text())
    names = {}
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace("1024", "256"), names)  # tokens
    assert names["small"] == SMALL
    assert names["result"].bit_exact
    assert abs(names["counted"] - names["predicted"]) <= 0.2 * names["counted"]
    cycles = names["table"].cycles
    assert cycles[8] > cycles[16] > cycles[32]
    assert len(names["designs"]) == 6
    assert names["designs"].on_front.sum() == len(names["results"].front) >= 2
    assert names["steps"].compute_cycles.sum() > 0
    assert Path("kernel", "loomwork_attention.v").exists()


def test_the_tutorial():
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())
    assert {kind for kind, *_ in blocks} == {"sh", "yaml", "python"}
    for kind, title, text in blocks:
        if kind == "sh":
            for line in text.splitlines():
                program, *words = shlex.split(line, comments=True)
                assert program == "loomwork"
                call(*words)
        else:
            Path(title).write_text(text)
            if kind == "python":
                exec(text, {})
    assert load_config(find_engine("attention"), "small.yaml", load_board("u55c")) == SMALL
    files = "out.npz", "report.json", "page.html", "kernel/loomwork_attention.v", "card.json", "plan.json"
    assert all(Path(file).exists() for file in files)
