"""Simulators of a small design: built, kept, run, and what is said when something goes wrong."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.errors import InputError, ToolError
from sim.build.cache import VARIABLE, BuildCache
from sim.build.simulator import OPTIMIZE_VARIABLE, SimulationError, build, built_quickly, run
from sim.build.toolchain import package_root
from tests.support.processes import running

ROOT = Path(__file__).parents[3]
COUNTER = """
module counter(
  output bit clk, input bit [31:0] limit, output bit [31:0] value, output bit done, input bit quit
);
  bit clock = 0;
  always #5 clock = ~clock;
  assign clk = clock;
  always @(posedge clock) begin
    value <= value + 1;
    done <= limit != 0 && value >= limit;
    if (quit) $finish;
  end
endmodule
"""
PORTS = ("clk", "limit", "value", "done", "quit")


def built(**options):
    return build({"counter.sv": COUNTER}, **{"top": "counter", "visible": PORTS, **options})


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache without builds, but with the objects that all builds share."""
    shared = BuildCache("objects").directory
    shared.mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "objects").symlink_to(shared)
    monkeypatch.setenv(VARIABLE, str(folder))
    return BuildCache("simulators")


def test_demo_and_commands_share_a_simulator(own_cache, monkeypatch):
    """The demo compiles quickly, commands optimize: what is there serves both."""
    monkeypatch.delenv(OPTIMIZE_VARIABLE)
    with built_quickly():
        quick = built()
    assert not quick.cached
    assert OPTIMIZE_VARIABLE not in os.environ
    assert (built().path, built().cached) == (quick.path, True)
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O2 -fno-tree-pre -fno-code-hoisting")
    optimized = built()
    assert not optimized.cached
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    with built_quickly():  # the user's own level stays
        assert os.environ[OPTIMIZE_VARIABLE] == "-O0"
        assert not built().cached
    monkeypatch.delenv(OPTIMIZE_VARIABLE)
    BuildCache("simulators").remove(quick.path.name)
    with built_quickly():
        assert (built().path, built().cached) == (optimized.path, True)


def test_it_is_built_once_and_runs(tmp_path, own_cache):
    first = built()
    again = built()
    assert (first.cached, again.cached) == (False, True)
    assert again.path == first.path
    assert again.seconds < 2
    assert set(first.versions) == {"verilator", "cxx", "cocotb"}
    assert sorted(path.name for path in first.path.iterdir()) == [
        "build.log",
        "contents.json",
        "counter",
        "counter.sv",
        "made.json",
        "visible.vlt",
    ]
    assert run(again, module="tests.bench.counter", directory=tmp_path) > 0
    assert "counts" in (tmp_path / "sim.log").read_text()


def test_a_failed_test_is_an_error_with_its_own_words(tmp_path):
    with pytest.raises(SimulationError, match=r"^the counter is not seven.*log is .*sim\.log$"):
        run(built(), module="tests.bench.counter", directory=tmp_path, environ={"COUNTER_TEST": "fails"})


def test_a_simulation_that_ends_by_itself_is_an_error(tmp_path):
    with pytest.raises(SimulationError):
        run(built(), module="tests.bench.counter", directory=tmp_path, environ={"COUNTER_TEST": "ends"})


def test_a_module_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(SimulationError, match="no_such_module"):
        run(built(), module="no_such_module", directory=tmp_path)


def test_what_the_caller_raises_ends_the_simulator(tmp_path):
    class StopError(Exception):
        pass

    began = time.monotonic()

    def tick():
        if time.monotonic() - began > 1:
            raise StopError

    environ = {"COUNTER_TEST": "sleeps", "LOOMWORK_TEST_MARK": str(tmp_path)}
    with pytest.raises(StopError):
        run(built(), module="tests.bench.counter", directory=tmp_path, environ=environ, tick=tick)
    assert not running(f"LOOMWORK_TEST_MARK={tmp_path}")


def test_verilog_that_does_not_compile_is_one_line_and_a_log(own_cache):
    with pytest.raises(
        ToolError, match=r"^the simulator does not build: %Error: .*bad\.sv:1:.*\(the log is (.*)\)$"
    ) as caught:
        build({"bad.sv": "module bad(input clk; endmodule\n"}, top="bad", visible=())
    assert Path(str(caught.value).split("log is ")[1][:-1]).exists()
    assert not [path for path in own_cache.directory.iterdir() if path.is_dir()]


def test_a_model_that_does_not_compile_names_its_error(own_cache):
    sources = {"counter.sv": COUNTER, "model.cpp": "int broken() { return nothing; }\n"}
    with pytest.raises(ToolError, match=r"model\.cpp:1:\d+: error:"):
        build(sources, top="counter", visible=PORTS)


@contextlib.contextmanager
def compiling(own_cache):
    """A process of its own that builds, and has come to compiling."""
    program = (
        "from sim.build.simulator import build\n"
        f"build({{'counter.sv': {COUNTER!r}}}, top='counter', visible={PORTS!r})\n"
    )
    environ = {**os.environ, "LOOMWORK_TEST_MARK": str(own_cache.directory)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE) as victim:
        limit = time.monotonic() + 30
        while not list(own_cache.directory.glob("*.building-*/objects/Vtop.mk")):
            assert time.monotonic() < limit
            assert victim.poll() is None
            time.sleep(0.005)
        yield victim


def test_a_terminated_build_ends_with_all_it_started_and_leaves_nothing(own_cache):
    with compiling(own_cache) as victim:
        began = time.monotonic()
        victim.terminate()
        assert b"Terminated" in victim.stderr.read()
    assert time.monotonic() - began < 2
    assert not list(own_cache.directory.iterdir())
    assert not running(f"LOOMWORK_TEST_MARK={own_cache.directory}")


def test_a_build_killed_half_way_is_made_again(tmp_path, own_cache):
    with compiling(own_cache) as victim:
        victim.kill()
    assert not list(own_cache.directory.glob("*/counter"))
    recovered = built()
    assert not recovered.cached
    assert not list(own_cache.directory.glob("*.building-*"))
    run(recovered, module="tests.bench.counter", directory=tmp_path)


@pytest.mark.parametrize("name", ["a.txt", "folder/a.v", "../a.v", "a"])
def test_source_names_are_plain_and_of_a_known_kind(name):
    with pytest.raises(InputError, match=r"^source name must be a plain name that ends in \.v"):
        build({name: ""}, top="counter", visible=())


def test_what_is_damaged_is_made_again_wherever_it_is(tmp_path, monkeypatch):
    """A program and an object that all share, both truncated; make reads no spaces, so that it is given links
    to the cache and to Verilator.
    """
    shared, place = built().path, tmp_path / "mein Ordner é 模 $HOME #1"
    program = place / "cache" / "simulators" / shared.name / "counter"
    shutil.copytree(shared, program.parent)
    large = shutil.ignore_patterns("*.gch")  # which a design this small does not use
    shutil.copytree(BuildCache("objects").directory, place / "cache" / "objects", ignore=large)
    # Its programs find each other where they really are, so that a link would not do.
    shutil.copytree(package_root() / "bin", place / "verilator" / "bin")
    (place / "verilator" / "include").symlink_to(package_root() / "include")
    monkeypatch.setenv(VARIABLE, str(place / "cache"))
    monkeypatch.setattr("sim.build.toolchain.package_root", lambda: place / "verilator")
    assert built().cached
    program.write_bytes(program.read_bytes()[:-100])
    # One for each set of flags.
    shared_objects = list((place / "cache" / "objects").glob("*/verilated_dpi.o"))
    for dpi in shared_objects:
        dpi.write_bytes(b"no object")
    again = built()
    assert (again.cached, again.path) == (False, program.parent)
    assert sum(dpi.stat().st_size > 1000 for dpi in shared_objects) == 1
    (place / "run").mkdir()
    assert run(again, module="tests.bench.counter", directory=place / "run") > 0


def test_waves_need_a_simulator_built_for_them(tmp_path):
    with pytest.raises(InputError, match=r"^waves must be given only for a simulator built with tracing"):
        run(built(), module="tests.bench.counter", directory=tmp_path, waves=tmp_path / "w.vcd")


def test_every_input_of_a_build_is_in_its_key(tmp_path, monkeypatch):
    seen = []
    made = tmp_path / "made.json"
    made.write_text('{"trace": null, "versions": {}}')

    def get(self, key, make, *, waiting):
        seen.append(key)
        return tmp_path, False

    monkeypatch.setattr(BuildCache, "find", lambda self, key: None)
    monkeypatch.setattr(BuildCache, "get", get)
    for sources, options in (
        ({"counter.sv": COUNTER}, {}),
        ({"counter.sv": COUNTER + " "}, {}),
        ({"counter.v": COUNTER}, {}),
        ({"counter.sv": COUNTER, "model.h": ""}, {}),
        ({"counter.sv": COUNTER}, {"trace": True}),
        ({"counter.sv": COUNTER}, {"visible": PORTS[:-1]}),
        ({"counter.sv": COUNTER}, {"top": "other"}),
    ):
        build(sources, **{"top": "counter", "visible": PORTS, **options})
    assert len(set(seen)) == len(seen) == 7
