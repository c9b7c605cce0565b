"""Kernel calls: a kernel that keeps the rules, and what is said of one that does not."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hw.board import Memory
from hw.board.memory_timing import HostTiming
from hw.errors import InputError
from hw.launch import Buffer, Launch
from sim.build.simulator import SimulationError
from sim.memory.trace import Channel, accesses, read_trace
from sim.run import launch as launch_module
from sim.run.launch import simulate
from sim.run.signals import cycles_in, read_signals
from tests.support.boards import small_board
from tests.support.memory.mask_kernel import SIGNALS, mask_kernel, mask_table

ROOT = Path(__file__).parents[3]
MASK = 0x01020304
HOST = Memory(
    name="host",
    kind="host",
    channels=1,
    port_data_width=64,
    channel_bytes=1 << 24,
    peak_bytes_per_second=4e9,
    realistic_bytes_per_second=3e9,
    burst_beats=16,
    protocol="axi4",
    timing=HostTiming(),
)
BOARD = dataclasses.replace(small_board(), memories=(*small_board().memories, HOST))
# From the host's memory to the board's.
TABLE = mask_table("host0")
PLACEMENT = {"host0": 0, "gmem1": 2}


@pytest.fixture(scope="module")
def kernel():
    return mask_kernel(TABLE, 64)


def data(size):
    return np.random.default_rng(size).integers(0, 256, size, np.uint8)


def call(size, *, room=None, hang=0):
    return Launch(
        scalars={"bytes": size, "mask": MASK, "hang": hang},
        buffers=(
            Buffer(argument="source", data=data(size), size_bytes=size),
            Buffer(argument="sink", data=None, size_bytes=room or size, output=True),
        ),
    )


def simulate_call(kernel, given, directory, **options):
    options = {"expected_cycles": 2000, **options}
    return simulate(kernel.on(BOARD, PLACEMENT), given, directory=directory, **options)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("mode", "size"), [("model", 1), ("model", 4096), ("model", 5003), ("fast", 1), ("jitter", 5003)]
)
def test_bytes_arrive_and_are_counted(kernel, tmp_path, mode, size):
    done = simulate_call(kernel, call(size), tmp_path / "run", memory_mode=mode, seed=size)
    mask = np.resize(np.frombuffer(MASK.to_bytes(4, "little"), np.uint8), size)
    np.testing.assert_array_equal(done.buffers["sink"], data(size) ^ mask)
    (answer,) = done.answer.calls
    counters = answer.counters
    assert (counters["host0_read_bytes"], counters["gmem1_write_bytes"]) == (size, size)
    assert counters["cycles_total"] == counters["cycles_busy"] + counters["cycles_stall_memory"]
    # The testbench counts the way from the register to the body and back too.
    assert 0 < answer.cycles_start_to_done - counters["cycles_total"] < 10
    assert done.answer.memories["host"]["ports"][0]["read_bytes"] == -(-size // 8) * 8
    assert done.answer.memories["main"]["ports"][0]["write_bytes"] == -(-size // 8) * 8
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {"answer.json", "memory.cfg", "plan.json", "progress", "results.xml", "sim.log"}


def test_several_calls_without_reset(kernel, tmp_path):
    """Three parts under two masks; what is not said again stays."""
    parts = ({}, {"mask": 5, "source": 256, "sink": 256}, {"bytes": 128, "source": 512, "sink": 512})
    given = dataclasses.replace(call(640), scalars=call(256).scalars, then=parts[1:])
    done = simulate_call(kernel, given, tmp_path / "run")
    masks = np.repeat(np.array([MASK, 5], "<u4"), [64, 96]).view(np.uint8)
    np.testing.assert_array_equal(done.buffers["sink"], data(640) ^ masks)
    assert [one.counters["host0_read_bytes"] for one in done.answer.calls] == [256, 256, 128]
    assert done.answer.memories["host"]["ports"][0]["read_bytes"] == 640


def test_a_relative_directory_is_the_callers(kernel, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = simulate_call(kernel, call(64), Path("run"))
    assert len(done.buffers["sink"]) == 64
    assert (tmp_path / "run" / "results.xml").is_file()


@pytest.mark.soak
def test_waves_are_written_on_request(kernel, tmp_path):
    done = simulate_call(kernel, call(100), tmp_path / "run", waves=tmp_path / "waves.any")
    assert done.waves == tmp_path / f"waves.{done.built.trace}"
    assert done.waves.stat().st_size > 10_000
    if done.built.trace == "vcd":
        assert "m_axi_gmem1_AWVALID" in done.waves.read_text()


def test_both_memories_are_traced_on_request(kernel, tmp_path):
    files = {name: tmp_path / f"{name}.trace" for name in ("host", "main")}
    done = simulate_call(kernel, call(5003), tmp_path / "run", traces=files)
    for name, channel, kind in (("host", Channel.AR, "read"), ("main", Channel.AW, "write")):
        found = accesses(read_trace(files[name]))
        counted = done.answer.memories[name]["ports"][0]
        assert set(found["channel"]) == {channel}
        assert len(found) == counted[f"{kind}_bursts"]
        assert found["bytes"].sum() == counted[f"{kind}_bytes"]
        ends = found["address"] + found["bytes"]
        assert np.array_equal(found["address"][1:], ends[:-1])  # one buffer, in order


def test_signals_are_logged_on_request(kernel, tmp_path):
    done = simulate_call(kernel, call(5003), tmp_path / "run", memory_mode="jitter", signals=tmp_path / "log")
    log = read_signals(tmp_path / "log", [*SIGNALS])
    words = cycles_in(log.high("offered", "taken"))
    assert len(words) * 8 == done.answer.memories["main"]["ports"][0]["write_bytes"]
    assert len(log.pulses("offered")) > len(words)  # the memory stalls
    assert 0 < words[0] < words[-1] < done.answer.cycles_simulated


def test_a_buffer_of_the_kernels_own(kernel, tmp_path):
    given = call(200)
    own = dataclasses.replace(given.buffers[1], output=False)
    done = simulate_call(
        kernel, dataclasses.replace(given, buffers=(given.buffers[0], own)), tmp_path / "run"
    )
    assert done.buffers == {}


def test_a_memory_that_no_port_has_is_not_traced(kernel, tmp_path):
    with pytest.raises(InputError, match=r"^trace of memory must be one of host, main, not 'hbm'"):
        simulate_call(kernel, call(64), tmp_path / "run", traces={"hbm": tmp_path / "hbm.trace"})


def test_a_kernel_that_hangs_is_given_up(kernel, tmp_path, monkeypatch):
    """The message names the waveforms, which show the stall."""
    monkeypatch.setattr(launch_module, "_LIMIT_EXTRA_CYCLES", 500)
    with pytest.raises(SimulationError, match=r"^the kernel did not finish in 2100 cycles \(no AXI rule was"):
        simulate_call(kernel, call(64, hang=1), tmp_path / "run", expected_cycles=100)
    with pytest.raises(SimulationError, match=r"waveforms until then: \S+/waves\.(fst|vcd)$"):
        simulate_call(
            kernel, call(64, hang=1), tmp_path / "run", expected_cycles=100, waves=tmp_path / "waves.any"
        )
    assert (tmp_path / "run" / "sim.log").exists()


def test_a_kernel_that_writes_past_its_buffer_is_found_out(kernel, tmp_path):
    with pytest.raises(
        SimulationError, match=r"^the kernel wrote after its buffer sink, first 0 bytes past it"
    ):
        simulate_call(kernel, call(200, room=199), tmp_path / "run")


def test_a_broken_axi_rule_fails_the_run(kernel, tmp_path):
    broken = kernel.verilog.replace("assign m_axi_host0_ARBURST = 2'h1", "assign m_axi_host0_ARBURST = 2'h2")
    assert broken != kernel.verilog
    with pytest.raises(SimulationError, match=r"host: port 0, edge \d+: ar"):
        simulate_call(dataclasses.replace(kernel, verilog=broken), call(64), tmp_path / "run")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Terminated")]
)
def test_an_interrupt_ends_the_simulator_and_leaves_nothing(kernel, tmp_path, number, said):
    simulate_call(kernel, call(64), tmp_path / "run")
    program = (
        "import signal\nfrom pathlib import Path\nfrom tests.sim.run.test_launch import *\n"
        # Python has no KeyboardInterrupt where whoever started the tests ignores the signal.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"simulate_call(mask_kernel(TABLE, 64), call(64, hang=1), Path({str(tmp_path / 'run')!r}),"
        " expected_cycles=10**9)\n"
    )
    progress, limit = tmp_path / "run" / "progress", time.monotonic() + 60
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            while not (progress.exists() and len(progress.read_text().split()) > 2):
                assert process.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.02)
            os.kill(process.pid, number)
            # The simulator has a second's grace; the rest is for machines with other work.
            assert said in process.communicate(timeout=5)[1]
        finally:
            process.kill()
    assert not (tmp_path / "run").exists()
    for running in Path("/proc").glob("[0-9]*/cwd"):
        try:
            assert not os.readlink(running).startswith(str(tmp_path))
        except OSError:
            continue  # gone, or somebody else's
