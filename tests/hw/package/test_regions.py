"""Regions in the package: constraints whose cells are in the Verilog, of the one object that says where."""

import dataclasses
import re

import pytest

from hw.board import load_board
from hw.board.regions import Region
from hw.package import render
from hw.registry import find_engine
from hw.verilog import write_package
from sim.build.design import kernel_design
from sim.timing.delays import load_delays
from sim.timing.graph import TimingGraph
from sim.timing.netlist import read_parts
from tests.hw.package.support import make_design, run_tcl
from tests.support.engines import small_design


def divided(name):
    """Return a small kernel, and a board of three dies that are too small for it, with the engine's
    regions.
    """
    design = small_design(name)
    need = design.resources
    user = dataclasses.replace(need, lut=2 * need.lut, ff=3 * need.ff, dsp=2 * need.dsp)
    user = dataclasses.replace(user, bram36=4 * need.bram36, uram=8 * need.uram + 3)
    board = dataclasses.replace(design.board, user=user, slrs=3)
    regions = find_engine(name).regions(design.config, board)
    return dataclasses.replace(design, board=board, regions=regions)


def assigned(design):
    """Read the constraints: cells by die, and those whose hierarchy is kept."""
    text = render(design)["regions.xdc"]
    lists = re.findall(r"^set (\w+) \[get_cells \[list \\\n((?:.*\\\n)*)\]\]$", text, re.MULTILINE)
    cells = {name: set(re.findall(r"{(.*?)}", words)) for name, words in lists}
    kept = re.findall(r"^set_property KEEP_HIERARCHY SOFT \$(\w+)$", text, re.MULTILINE)
    dies = re.findall(r"^set_property USER_SLR_ASSIGNMENT SLR(\d+) \$(\w+)$", text, re.MULTILINE)
    assert sorted(kept) == sorted(name for _, name in dies) == sorted(cells)
    return {int(slr): cells[name] for slr, name in dies}


def instances(modules, module, path=""):
    """Return the paths of all instances in a module, of the texts of all by name."""
    for kind, name in re.findall(r"^  \\?(\S+) +\\?(\S+) +\($", modules[module], re.MULTILINE):
        if kind in modules:
            yield path + name
            yield from instances(modules, kind, f"{path}{name}/")


@pytest.mark.parametrize("name", ["attention", "conv"])
def test_every_cell_of_the_constraints_is_in_the_verilog(name):
    design = divided(name)
    assert len(design.regions) > 1
    texts = design.verilog.split("\nmodule ")
    modules = {re.match(r"\\?([^\s(]+)", text)[1]: text for text in texts[1:]}
    there = set(instances(modules, design.top_name))
    found = assigned(design)
    assert list(found) == [region.slr for region in design.regions]
    for region in design.regions:
        assert found[region.slr] <= there
        assert {part.replace(".", "/") for part in region.parts} <= found[region.slr]
    # Whatever instance is not assigned holds one that is, and none is assigned twice.
    every = [cell for cells in found.values() for cell in cells]
    assert len(every) == len(set(every))
    for path in there:
        own = [cell for cell in every if path == cell or path.startswith(f"{cell}/")]
        assert len(own) == 1 or (not own and any(cell.startswith(f"{path}/") for cell in every)), path


def test_a_kernel_on_one_die_has_no_such_constraints():
    design = make_design("u55c")
    assert len(design.regions) == 1
    assert "regions.xdc" not in render(design)
    assert "slr=loomwork_vadd_1:SLR0" in render(design)["connectivity.cfg"]


def test_a_kernel_on_two_dies_is_given_to_no_single_one():
    assert "\nslr=" not in render(divided("attention"))["connectivity.cfg"]


def test_the_constraints_are_packaged(tmp_path):
    design = dataclasses.replace(
        make_design("u55c"), regions=(Region(slr=0, parts=(), rest=True), Region(slr=1, parts=("body",)))
    )
    write_package(design, tmp_path / "package")
    work = tmp_path / "work"
    work.mkdir()
    calls = run_tcl(tmp_path / "package" / "gen_xo.tcl", work, "build/k.xo")
    names = [call[0] for call in calls]
    added = [call[1:] for call in calls if call[0] == "add_files"]
    assert added[-1] == ["-fileset", "constrs_1", "-norecurse", str(tmp_path / "package" / "regions.xdc")]
    assert names.index("ipx::package_project") > len(names) - 1 - names[::-1].index("add_files")


@pytest.mark.soak
@pytest.mark.parametrize("name", ["attention", "conv"])
def test_parts_of_the_default_are_placements_of_the_netlist(name):
    """As Yosys maps the kernel for the U55C; a region's parts are all that the estimate finds on its die."""
    board = load_board("u55c")
    engine = find_engine(name)
    design = kernel_design(engine, engine.default_config(board), board, sources=True)
    graph = TimingGraph(
        read_parts(design.verilog, design.top_name, load_delays()), design.top_name, load_delays()
    )
    placed = {path for path, _ in graph.placed}
    assert len(design.regions) == 2
    assert placed == {"", *(part for region in design.regions for part in region.parts)}
