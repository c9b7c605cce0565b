"""The host scripts, run against stand-ins for XRT and PYNQ that behave like a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hw.package import render
from tests.hw.package.support import make_design

FAKES = Path(__file__).parent / "fakes"
COUNTERS = ("cycles_total", "cycles_busy", "cycles_stall_memory", "cycles_idle")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Build the stand-in for XRT's C library; gives its directory."""
    directory = tmp_path_factory.mktemp("xrt")
    target = directory / "libxrt_coreutil.so.2"
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        "-o",
        str(target),
        str(FAKES / "xrt_coreutil.c"),
    ]
    subprocess.run(command, check=True)
    return directory


class Host:
    """A host script with its input, and what it did."""

    def __init__(self, board, image, directory, library):
        self.directory, self.image, self.library = directory, image, library
        self.script = directory / "host.py"
        self.script.write_text(render(make_design(board))["host.py"])
        rng = np.random.default_rng(1)
        self.inputs = {
            "a": rng.integers(0, 2**32, (4, 8), dtype=np.uint32),
            "b": rng.integers(0, 2**32, (4, 8), dtype=np.uint32),
            "c": np.zeros((4, 8), dtype=np.uint32),
            "words": np.int64(32),
        }

    def run(self, *options, **environ):
        np.savez(self.directory / "in.npz", **self.inputs)
        self.log = self.directory / "log"
        self.log.unlink(missing_ok=True)
        command = [sys.executable, "-W", "error", str(self.script), self.image]
        command += ["--input", "in.npz", "--output", "out.npz", *options]
        environ = {
            **os.environ,
            "PYTHONPATH": str(FAKES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(self.library),
            "FAKE_LOG": str(self.log),
            **environ,
        }
        return subprocess.run(
            command, cwd=self.directory, env=environ, capture_output=True, text=True, check=False
        )

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def outputs(self):
        with np.load(self.directory / "out.npz") as file:
            return dict(file)


@pytest.fixture
def alveo(tmp_path, library):
    return Host("u55c", "k.xclbin", tmp_path, library)


@pytest.fixture
def zynq(tmp_path, library):
    return Host("zcu104", "design.bit", tmp_path, library)


@pytest.fixture(params=["alveo", "zynq"])
def host(request):
    return request.getfixturevalue(request.param)


def test_the_kernel_gets_the_bytes_and_gives_its_own(host):
    run = host.run()
    assert run.returncode == 0, run.stderr
    outputs = host.outputs()
    for name in ("a", "b"):
        assert np.array_equal(outputs[name], host.inputs[name])
    assert outputs["c"].dtype == np.uint32
    assert np.array_equal(outputs["c"], host.inputs["a"] + host.inputs["b"])


def test_counters_are_read_low_word_first_and_saved(host):
    run = host.run()
    outputs = host.outputs()
    assert set(outputs) == {"a", "b", "c", *COUNTERS} | {
        "gmem0_read_bytes",
        "gmem1_read_bytes",
        "gmem2_write_bytes",
    }
    for index, name in enumerate(COUNTERS):
        assert int(outputs[name]) == 7 << 32 | 0x1400 + 8 * index
        assert f"{7 << 32 | 0x1400 + 8 * index:,}" in run.stdout


def test_calls_to_xrt_in_order(alveo):
    alveo.run("--device", "2", "--timeout-ms", "123")
    events = alveo.events()
    before = [["device", 2], ["load_xclbin", "k.xclbin"], ["kernel", "loomwork_vadd"]]
    assert events[:3] == before
    # The group of a buffer is asked for by the argument's place in the call.
    assert [event for event in events if event[0] == "bo"] == [
        ["bo", 128, "normal", 100 + n] for n in range(3)
    ]
    assert ["call", "bo", "bo", "bo", 32] in events
    assert ["wait", 123] in events
    syncs = [event for event in events if event[0] == "sync"]
    assert syncs == [["sync", "to", 128, 0]] * 3 + [["sync", "from", 128, 0]] * 3
    # Alone with the kernel only once the binding has let go of it.
    assert events.index(["kernel gone"]) < events.index(["xrtPLKernelOpenExclusive", 0])
    reads = [event[1] for event in events if event[0] == "read"]
    assert reads == [0x400 + 4 * n for n in range(2 * 7)]
    assert events[-2:] == [["xrtKernelClose", 1], ["xrtDeviceClose", 1]]


@pytest.mark.parametrize(
    ("value", "passed"), [(2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 - 1, -1), (-5, -5)]
)
def test_a_scalar_reaches_the_card_with_all_its_bits(alveo, value, passed):
    alveo.inputs["words"] = np.int64(value)
    alveo.run()
    assert ["call", "bo", "bo", "bo", passed] in alveo.events()


def test_registers_written_on_zynq(zynq):
    zynq.inputs["words"] = np.int64(-5)
    run = zynq.run()
    assert run.returncode == 0, run.stderr
    base = 0x8_0000_0000
    assert zynq.events() == [
        [0x10, base % 2**32], [0x14, 8], [0x1C, base % 2**32 + 0x1_0000], [0x20, 8],
        [0x28, base % 2**32 + 0x2_0000], [0x2C, 8], [0x34, 2**32 - 5], [0x00, 1],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"words": None}, "must hold exactly a, b, c, words, not a, b, c"),
        ({"d": np.zeros(1)}, "must hold exactly a, b, c, words, not a, b, c, d, words"),
        ({"words": np.float32(3)}, "words must be one whole number, not float32 of shape ()"),
        ({"words": np.zeros(2, int)}, "words must be one whole number, not int64 of shape (2,)"),
        ({"words": np.int64(2**32)}, "words must be a number of 32 bit, not 4294967296"),
        ({"words": np.int64(-(2**31) - 1)}, "words must be a number of 32 bit, not -2147483649"),
        ({"b": np.zeros((0, 4))}, "b must have at least one byte, not shape (0, 4)"),
    ],
)
def test_wrong_inputs_are_one_line_and_nothing_runs(host, change, message):
    host.inputs = {k: v for k, v in {**host.inputs, **change}.items() if v is not None}
    run = host.run()
    assert run.returncode == 1
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert not host.log.exists()
    assert not (host.directory / "out.npz").exists()


def test_any_layout_of_an_array_is_sent_as_its_bytes_in_order(host):
    host.inputs["a"] = np.asfortranarray(host.inputs["a"])
    host.inputs["b"] = host.inputs["b"][::-1]
    host.run()
    assert np.array_equal(host.outputs()["c"], host.inputs["a"] + host.inputs["b"])


def test_a_run_that_does_not_complete(alveo):
    run = alveo.run(FAKE_STATE="TIMEOUT")
    assert (run.returncode, run.stderr) == (1, "loomwork_vadd did not complete: TIMEOUT\n")


def test_a_run_that_does_not_end(zynq):
    run = zynq.run("--timeout-ms", "20", FAKE_HANGS="1")
    assert (run.returncode, run.stderr) == (1, "loomwork_vadd was not done after 20 ms\n")


@pytest.mark.parametrize(
    ("refuses", "message"),
    [
        ("device", "XRT cannot open device 0 to read the counters"),
        ("kernel", "XRT cannot open loomwork_vadd alone to read the counters: another process uses it"),
        ("register", "XRT cannot read the register at 0x400"),
    ],
)
def test_what_xrt_refuses(alveo, refuses, message):
    run = alveo.run(FAKE_REFUSES=refuses)
    assert (run.returncode, run.stderr) == (1, message + "\n")
    # The results are there all the same.
    outputs = alveo.outputs()
    assert set(outputs) == {"a", "b", "c"}
    assert np.array_equal(outputs["c"], alveo.inputs["a"] + alveo.inputs["b"])


def test_one_instance_among_several(zynq):
    run = zynq.run(FAKE_IPS="vadd_0,vadd_1")
    assert run.stderr == "the bitstream must have one loomwork_vadd, not 2\n"
    assert zynq.run("--ip", "vadd_1", FAKE_IPS="vadd_0,vadd_1").returncode == 0
    run = zynq.run("--ip", "vadd_2", FAKE_IPS="vadd_0")
    assert run.stderr == "the bitstream must have one loomwork_vadd called vadd_2, not 0\n"


def test_an_instance_in_a_hierarchy(zynq):
    assert zynq.run(FAKE_IPS="block/vadd_0").returncode == 0


def test_the_scripts_pass_the_linter_of_this_project(host):
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--select",
        "E,F,W,B,UP,SIM",
        "--line-length",
        "110",
    ]
    run = subprocess.run([*command, str(host.script)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
