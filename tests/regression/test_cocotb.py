"""The page of cocotb's users, followed: a package's own test bench on a launch folder, and a component.

The test bench must fail where the kernel is wrong: faults are seeded in the package's Verilog.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hw.board.files import find_board, load_board
from sim.run.card import verify, write_launch
from sim.run.run import Target
from tests.support.engines import small_engines
from tests.support.testbench import environment, make_bench, need_icarus, verilator_path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "cocotb.md"
PACKAGE, LAUNCH = Path("build/tb/attention"), Path("build/tb/card")

#: Faults of a kernel: a place in the text of one module, and what stands there instead.
FAULTS = {
    "a bit of one port": ("loomwork_attention", r"(assign m_axi_gmem4_WDATA = .*);", r"\1 ^ 128'd1;"),
    "rounding of 2^x": (r"\\attention_rows_2\.exp2_0", r"(assign \S+  = \S+  \+) \S+ \[0\];", r"\1 1'h0;"),
}
#: Of which the first runs in `make test`.
QUICK = "a bit of one port"


def block(language, number):
    """Return a block of the page."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [text for found, text in blocks if found == language][number]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder where the page's first block was carried out: a package and a launch."""
    need_icarus()
    directory = tmp_path_factory.mktemp("page")
    (directory / "examples").symlink_to(ROOT / "examples")
    run = shell(block("", 0), directory)
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    assert "2560 of 2560 bytes compared, 0 differ" in run.stdout
    return directory


def shell(script, directory):
    return subprocess.run(
        ["bash", "-ec", script],
        cwd=directory,
        env=environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def test_the_page_s_run_passes_and_is_verified(folder):
    done = verify(folder / LAUNCH)
    assert done.bit_exact, done.mismatches
    assert done.report.measured_on == "testbench"


@pytest.mark.soak
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=[] if fault == QUICK else pytest.mark.soak) for fault in FAULTS]
)
def test_a_fault_of_the_kernel_fails(folder, tmp_path, fault):
    package, card = copied(folder, tmp_path)
    if fault == QUICK:
        tiny_launch(card, tmp_path / "in.npz")
    module, old, new = FAULTS[fault]
    source = package / "loomwork_attention.v"
    text = source.read_text()
    (found,) = re.findall(rf"^module {module} ?\(.*?^endmodule", text, re.MULTILINE | re.DOTALL)
    faulty, times = re.subn(old, new, found)
    assert times
    source.write_text(text.replace(found, faulty))
    run = make_bench(package, card, "SIM=icarus")
    assert run.returncode != 0
    assert "results differ from the golden model's: o0: " in run.stdout
    assert not verify(card).bit_exact


def tiny_launch(card, path):
    """Replace a launch folder by one of two queries of the same kernel."""
    rng = np.random.default_rng(0)
    np.savez(
        path, **{name: rng.normal(size=(1, count, 16)) for name, count in (("q", 2), ("k", 8), ("v", 8))}
    )
    (config,) = (config for name, _, config in small_engines() if name == "attention")
    target = Target.of("attention", config, load_board("u55c"))
    write_launch(target, find_board("u55c"), {"input": path}, card, seed=0)


@pytest.mark.soak
def test_a_launch_of_another_kernel_is_refused(folder, tmp_path):
    package, card = copied(folder, tmp_path)
    text = (card / "launch.json").read_text()
    (card / "launch.json").write_text(re.sub(r'("config_hash": )"\w+"', r'\1"000000000000"', text))
    run = make_bench(package, card, "SIM=icarus")
    assert run.returncode != 0
    assert "the launch is one of another configuration" in run.stdout
    run = make_bench(package, tmp_path / "nowhere", "SIM=icarus")
    assert run.returncode != 0
    assert "nowhere is no folder of loomwork launch; set LAUNCH" in run.stdout


@pytest.mark.soak
def test_verilator_passes_and_writes_waves(folder, tmp_path):
    package, card = copied(folder, tmp_path)
    # The headers' flag is another thing that Python's package leaves out.
    build = "BUILD_ARGS=CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
    run = make_bench(package, card, "SIM=verilator", "WAVES=1", build, paths=[verilator_path(tmp_path)])
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    assert "2560 of 2560 bytes compared, 0 differ" in run.stdout
    assert (package / "tb" / "dump.vcd").stat().st_size > 1 << 20
    assert verify(card).bit_exact


@pytest.mark.soak
def test_icarus_writes_waves(folder, tmp_path):
    package, card = copied(folder, tmp_path)
    run = make_bench(package, card, "SIM=icarus", "WAVES=1")
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    waves = package / "tb" / "sim_build" / "icarus-waves" / "loomwork_attention.fst"
    assert waves.stat().st_size > 1 << 16


def copied(folder, directory):
    """Return copies of package and launch folder, with the compiled simulator if the Verilog stays."""
    shutil.copytree(folder / PACKAGE, package := directory / "package")
    shutil.copytree(folder / LAUNCH, card := directory / "card")
    return package, card


def test_the_page_s_component_passes(tmp_path):
    need_icarus()
    (tmp_path / "test_fifo.py").write_text(block("python", 0))
    (tmp_path / "Makefile").write_text(block("make", 0))
    run = shell(block("", 1), tmp_path)
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    assert "TESTS=1 PASS=1" in run.stdout
    # A FIFO that loses its payload's lowest bit.
    text = (tmp_path / "fifo.v").read_text()
    faulty, times = re.subn(r"assign o__payload = (.*);", r"assign o__payload = \1 | 16'h1;", text)
    assert times == 1
    (tmp_path / "fifo.v").write_text(faulty)
    os.utime(tmp_path / "fifo.v")
    run = shell("make", tmp_path)
    assert run.returncode != 0
    assert "FAIL=1" in run.stdout
