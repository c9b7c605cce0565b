"""The host scripts, run against stand-ins for XRT and PYNQ that behave like a card."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from examples.vadd.engine import VaddConfig
from hw.board.files import find_board, load_board
from hw.package import render
from sim.run.card import verify, write_launch
from sim.run.run import Target
from tests.hw.package.support import FAKES, build_xrt, make_design, write_host
from tests.support.vadd import register_vadd

COUNTERS = ("cycles_total", "cycles_busy", "cycles_stall_memory", "cycles_idle")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_xrt(tmp_path_factory.mktemp("xrt"))


class Host:
    """A host script, a launch folder of vadd's, and what came of it."""

    def __init__(self, board, directory, library):
        self.directory, self.library, self.folder = directory, library, directory / "card"
        self.script, self.log = directory / "host.py", directory / "log"
        self.is_alveo = board == "u55c"
        write_host(render(make_design(board)), directory)
        rng = np.random.default_rng(1)
        self.inputs = {name: rng.integers(-(2**31), 2**31, 32, np.int32) for name in "ab"}
        np.savez(directory / "in.npz", **self.inputs)
        given = {"input": directory / "in.npz"}
        write_launch(
            Target.of("vadd", VaddConfig(), load_board(board)), find_board(board), given, self.folder, seed=0
        )

    def run(self, *options, **environ):
        self.log.unlink(missing_ok=True)
        environ = {
            **os.environ,
            "PYTHONPATH": str(FAKES),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LD_LIBRARY_PATH": str(self.library),
            "FAKE_LOG": str(self.log),
            **environ,
        }
        command = [sys.executable, "-W", "error", str(self.script), "card", *options]
        return subprocess.run(
            command, cwd=self.directory, env=environ, capture_output=True, text=True, check=False
        )

    def change(self, **values):
        path = self.folder / "launch.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    def entries(self):
        return json.loads((self.folder / "launch.json").read_text())["arguments"]

    def meta(self):
        return json.loads((self.directory / "meta.json").read_text())

    def events(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def forget_counters(self):
        record = self.record() | {"counters": None}
        (self.folder / "results" / "run.json").write_text(json.dumps(record))

    def record(self):
        return json.loads((self.folder / "results" / "run.json").read_text())


@pytest.fixture
def vadd(monkeypatch):
    register_vadd(monkeypatch)


@pytest.fixture
def alveo(vadd, tmp_path, library):
    return Host("u55c", tmp_path, library)


@pytest.fixture
def zynq(vadd, tmp_path, library):
    return Host("zcu104", tmp_path, library)


@pytest.fixture(params=["alveo", "zynq"])
def host(request):
    return request.getfixturevalue(request.param)


@pytest.mark.sample(1)
def test_the_kernel_gets_the_bytes_and_gives_its_own(host, tmp_path):
    (tmp_path / "seen").mkdir()
    run = host.run(FAKE_SEEN=str(tmp_path / "seen"))
    assert run.returncode == 0, run.stderr
    for index, entry in enumerate(host.entries()[:2]):
        seen = tmp_path / "seen" / f"{index if host.is_alveo else entry['offset']}.bin"
        assert seen.read_bytes() == host.inputs[entry["name"]].tobytes()
    assert [path.name for path in sorted((host.folder / "results").iterdir())] == ["c.bin", "run.json"]
    # The stand-in's counters are no vadd's, so there is a verdict on the bits alone.
    host.forget_counters()
    done = verify(host.folder)
    assert done.bit_exact
    assert done.measured is None
    assert np.array_equal(done.integers["c"], host.inputs["a"] + host.inputs["b"])


def test_a_wrong_bit_of_the_card_is_found(host):
    host.run()
    path = host.folder / "results" / "c.bin"
    content = bytearray(path.read_bytes())
    content[17] ^= 1
    path.write_bytes(content)
    host.forget_counters()
    (line,) = verify(host.folder).mismatches
    assert line.startswith("c differs in 1 of 32 elements, first at [4]: ")


def test_counters_are_read_low_word_first_and_saved(host):
    run = host.run()
    record = host.record()
    moved = ("gmem0_read_bytes", "gmem1_read_bytes", "gmem2_write_bytes")
    assert set(record["counters"]) == {*COUNTERS, *moved, "status"}
    for index, name in enumerate(COUNTERS):
        assert record["counters"][name] == 7 << 32 | 0x1400 + 8 * index
        assert f"{7 << 32 | 0x1400 + 8 * index:,}" in run.stdout
    assert 0 < record["hardware"]["host_wall_seconds"] < 60
    assert record["config_hash"] == json.loads((host.folder / "launch.json").read_text())["config_hash"]


def test_calls_to_xrt_in_order(alveo):
    alveo.run("--xclbin", "k.xclbin", "--device", "2", "--timeout-ms", "123")
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
    assert syncs == [["sync", "to", 128, 0]] * 2 + [["sync", "from", 128, 0]]
    # Alone with the kernel only once the binding has let go of it.
    assert events.index(["kernel gone"]) < events.index(["xrtPLKernelOpenExclusive", 0])
    reads = [event[1] for event in events if event[0] == "read"]
    assert reads == [0x400 + 4 * n for n in range(2 * 8)]
    assert events[-2:] == [["xrtKernelClose", 1], ["xrtDeviceClose", 1]]


def test_the_images_are_those_that_make_leaves(alveo, tmp_path):
    alveo.run()
    assert alveo.events()[1] == ["load_xclbin", str(tmp_path / "build" / "hw" / "loomwork_vadd.xclbin")]


@pytest.mark.parametrize(("value", "passed"), [(2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32 - 1, -1)])
def test_a_scalar_reaches_the_card_with_all_its_bits(alveo, value, passed):
    *pointers, words = alveo.entries()
    alveo.change(arguments=[*pointers, words | {"value": value}])
    alveo.run()
    assert ["call", "bo", "bo", "bo", passed] in alveo.events()


def test_registers_written_on_zynq(zynq):
    *pointers, words = zynq.entries()
    zynq.change(arguments=[*pointers, words | {"value": 2**32 - 5}])
    run = zynq.run()
    assert run.returncode == 0, run.stderr
    base = 0x8_0000_0000
    assert zynq.events() == [
        [0x10, base % 2**32], [0x14, 8], [0x1C, base % 2**32 + 0x1_0000], [0x20, 8],
        [0x28, base % 2**32 + 0x2_0000], [0x2C, 8], [0x34, 2**32 - 5], [0x00, 1],
    ]  # fmt: skip


def test_what_points_nowhere(host, tmp_path):
    """XRT gets a page of zeros in its place, a register on Zynq a zero."""
    a, b, c, words = host.entries()
    host.change(arguments=[a, b | {"size_bytes": 0, "given": False}, c, words])
    (tmp_path / "seen").mkdir()
    run = host.run(FAKE_RESULTS="{}", FAKE_SEEN=str(tmp_path / "seen"))
    assert run.returncode == 0, run.stderr
    if host.is_alveo:
        assert [event[1] for event in host.events() if event[0] == "bo"] == [128, 4096, 128]
        assert (tmp_path / "seen" / "1.bin").read_bytes() == bytes(4096)
    else:
        assert [event for event in host.events() if event[0] in (0x1C, 0x20)] == [[0x1C, 0], [0x20, 0]]


def test_an_address_the_kernel_cannot_take(host):
    run = host.run(FAKE_OFFSET="64")
    assert run.returncode == 1
    assert run.stderr.startswith("the buffer of a begins at ")
    assert run.stderr.endswith("which is no multiple of 4096\n")


def test_addresses_within_a_buffer(host, tmp_path):
    """A number that counts from where another buffer begins becomes an address."""
    (tmp_path / "seen").mkdir()
    a, *others = host.entries()
    host.change(arguments=[a | {"links": [{"offset": 8, "argument": "b"}]}, *others])
    given = np.fromfile(host.folder / "buffers" / "a.bin", "<u8")
    given[1] = 16
    given.tofile(host.folder / "buffers" / "a.bin")
    run = host.run(FAKE_SEEN=str(tmp_path / "seen"), FAKE_RESULTS="{}")
    assert run.returncode == 0, run.stderr
    (seen,) = (path for path in (tmp_path / "seen").iterdir() if path.stem in ("0", "16"))
    of_b = 0x10_0000_0000 if seen.stem == "0" else 0x8_0001_0000
    expected = given.copy()
    expected[1] = of_b + 16
    assert np.array_equal(np.fromfile(seen, "<u8"), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": "loomwork-launch-2"},
            "format of card/launch.json must be loomwork-launch-1, not 'loomwork-launch-2'",
        ),
        ({"config_hash": "0" * 12}, "not 'loomwork_vadd of configuration 000000000000'"),
        ({"kernel": "loomwork_conv"}, "launch card must be one for loomwork_vadd of configuration"),
        ({"arguments": []}, "arguments of card/launch.json must be a, b, c, words, not ''"),
    ],
)
def test_another_launch_is_one_line_and_nothing_runs(host, change, message):
    host.change(**change)
    refuses(host, message)


def test_an_image_of_another_configuration_is_one_line_and_nothing_runs(host):
    own = host.meta()["config_hash"]
    image = host.directory / "build" / ("hw/loomwork_vadd.xclbin" if host.is_alveo else "loomwork_vadd.bit")
    beside = image.with_name("meta.json")
    beside.parent.mkdir(parents=True)
    beside.write_text(json.dumps(host.meta() | {"config_hash": "0" * 12}))
    legal = f"{own}, that of the package (make builds the image again)"
    refuses(host, f"configuration of {image} must be {legal}, not '{'0' * 12}'")
    beside.write_text("{")
    refuses(host, "package must be one of `loomwork verilog` (")
    beside.write_text(json.dumps(host.meta()))
    run = host.run()
    assert run.returncode == 0, run.stderr


def test_a_damaged_folder_is_one_line_and_nothing_runs(host):
    (host.folder / "buffers" / "b.bin").write_bytes(b"short")
    refuses(host, "b.bin must be 128, not 5")
    (host.folder / "buffers" / "b.bin").unlink()
    refuses(host, "b.bin'")
    (host.folder / "launch.json").write_text("{")
    refuses(host, "launch folder must be one of `loomwork launch` (")
    (host.folder / "launch.json").write_text("[]")
    refuses(host, "format of card/launch.json must be loomwork-launch-1, not None")
    (host.folder / "launch.json").write_text('{"format": "loomwork-launch-1"}')
    refuses(
        host,
        "launch folder must be whole, and made by this version of Loomwork (launch.json: KeyError 'kernel')",
    )
    (host.folder / "launch.json").unlink()
    refuses(host, "launch folder must be one of `loomwork launch` (")


def refuses(host, message, **environ):
    run = host.run(**environ)
    assert run.returncode == 1
    assert message in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert not host.log.exists()
    assert not (host.folder / "results").exists()


def test_without_the_libraries_of_the_card(host):
    library = "pyxrt" if host.is_alveo else "pynq"
    refuses(host, f"No module named '{library}': ", PYTHONPATH="")


def test_the_script_tells_of_a_launch_that_holds_for_every_package():
    """A board of a file of one's own has no name that the command takes; a configuration is no default."""
    text = " ".join(render(make_design("u55c"))["host.py"].split())
    assert "for this package's engine, board and configuration: its options --board and --config are" in text
    assert "--board u55c" not in text


def test_help_needs_no_library(host):
    run = host.run("--help", PYTHONPATH="")
    assert (run.returncode, run.stderr) == (0, "")
    assert "--timeout-ms" in run.stdout


def test_without_a_card_or_its_image(host):
    what = "XRT cannot load {} on card 0: gone" if host.is_alveo else "PYNQ cannot load {}: gone"
    image = "build/hw/loomwork_vadd.xclbin" if host.is_alveo else "build/loomwork_vadd.bit"
    refuses(host, what.format(host.directory / image), FAKE_NOT="gone")


def test_a_run_that_does_not_complete(alveo):
    alveo.run()
    run = alveo.run(FAKE_STATE="TIMEOUT")
    assert (run.returncode, run.stderr) == (1, "loomwork_vadd was not done after 60 s\n")
    # What came of the run before is not taken for what came of this one.
    assert not (alveo.folder / "results").exists()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("32", "a memory answered loomwork_vadd with an error (SLVERR or DECERR): status 32, no results\n"),
        ("8", "loomwork_vadd stopped: status 8; loomwork verify card says why\n"),
    ],
)
def test_a_kernel_that_says_that_nothing_came_of_it(host, status, message):
    run = host.run(FAKE_STATUS=status)
    assert (run.returncode, run.stderr) == (1, message)
    assert "next:" not in run.stdout
    done = verify(host.folder)
    assert done.measured is None
    (line,) = done.mismatches
    assert line.startswith(
        "A memory answered with an error (SLVERR or DECERR), which ended the launch: status"
    )


def test_a_run_that_does_not_end_or_not_begin(zynq):
    run = zynq.run("--timeout-ms", "20", FAKE_HANGS="1")
    assert (run.returncode, run.stderr) == (1, "loomwork_vadd was not done after 0.02 s\n")
    run = zynq.run(FAKE_BUSY="1")
    message = "loomwork_vadd is busy with an earlier call: load the bitstream again\n"
    assert (run.returncode, run.stderr) == (1, message)


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
    assert alveo.record()["counters"] is None
    assert verify(alveo.folder).bit_exact


def test_one_instance_among_several(zynq):
    run = zynq.run(FAKE_IPS="vadd_0,vadd_1")
    assert run.stderr == "the bitstream must have one loomwork_vadd, not 2\n"
    assert zynq.run("--instance", "vadd_1", FAKE_IPS="vadd_0,vadd_1").returncode == 0
    run = zynq.run("--instance", "vadd_2", FAKE_IPS="vadd_0")
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
