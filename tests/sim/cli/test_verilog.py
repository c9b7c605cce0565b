"""`loomwork verilog --core`: one core as a module; what it refuses."""

import json
from pathlib import Path

import pytest

from hw.cores import CORES
from tests.support.command_line import call, refused

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "examples" / "cores" / "read_dma.yaml"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_core_is_written_with_its_port_table():
    said = call("verilog", "--core", "read-dma", "--config", CONFIG, "--lint").stdout
    folder = Path("build/verilog/read-dma")
    meta = json.loads((folder / "meta.json").read_text())
    assert meta["core"] == "read-dma"
    assert {path.name for path in folder.iterdir()} == {"loomwork_read_dma.v", "ports.md", "meta.json"}
    assert "3 files" in said
    assert "Verilator's linter has nothing to say" in said


def test_the_module_may_have_another_name():
    call("verilog", "--core", "read-dma", "--config", CONFIG, "--name", "reader", "-o", "r")
    assert "\nmodule reader(" in Path("r/reader.v").read_text()


def test_help_names_every_core():
    said = " ".join(call("verilog", "--help").stdout.split())
    assert f"One core alone: {', '.join([*CORES][:-1])} or {[*CORES][-1]}." in said


def test_a_package_of_another_configuration_is_said_to_be_replaced():
    says = "replaces the package of another configuration, "
    words = ("verilog", "--engine", "scheduler", "-o", "p")
    assert says not in call(*words).stdout
    first = json.loads(Path("p/meta.json").read_text())["config_hash"]
    assert says not in call(*words).stdout
    assert says + first in call(*words, "--board", "u280").stdout


def test_another_core_is_refused():
    legal = ", ".join(CORES)
    assert refused("verilog", "--core", "oram") == f"core must be one of {legal}, not 'oram'"


def test_a_field_of_the_engine_s_movers_is_refused():
    Path("a.yaml").write_text("rows: 2\ncached_keys: 64\n")
    said = refused("verilog", "--core", "attention", "--config", "a.yaml")
    assert said.startswith("a.yaml:2: field of the core attention must be one of rows, lanes, ")
    assert "not 'cached_keys'" in said
    assert not Path("build").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--core", "conv", "--board", "u50"),
            "--board must be left out with --core: a core is the same on every board, not 'u50'",
        ),
        (
            ("--core", "conv", "--engine", "conv"),
            "--engine must be left out with --core: a core is the same on every board, not 'conv'",
        ),
        (("--name", "x"), "--name must be left out without --core, not 'x'"),
        (
            ("--core", "read-dma", "--name", "Reader"),
            "name must be a lower-case identifier of Verilog, not 'Reader'",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(words, message):
    assert refused("verilog", *words) == message


def test_a_configuration_is_not_replaced():
    Path("c").mkdir()
    Path("c/ports.md").write_text("data_width: 64\n")
    assert "must be another file than --config" in refused(
        "verilog", "--core", "read-dma", "--config", "c/ports.md", "-o", "c"
    )
