"""The way to a card and back, for every engine: a launch folder, host.py on a stand-in, replay, the verdict.

The simulators are those of the regression.
"""

import json
import os
import subprocess
import sys

import jsonschema
import numpy as np
import pytest

from hw.board.files import find_board, load_board
from hw.errors import InputError
from hw.launch import Buffer, Launch
from hw.oram.core.layouts import Code
from hw.package import render
from hw.registry import ENGINES
from sim.report.report import load
from sim.run.adapter import FaultyLaunch, Tamper
from sim.run.card import replay, verify, write_launch
from sim.run.launch_folder import SCHEMA, Manifest, read_expected, read_launch, read_manifest, schema_text
from sim.run.run import Target, find_adapter
from tests.hw.package.support import FAKES, build_xrt, write_host
from tests.support.command_line import call, refused
from tests.support.engines import small_design

#: Jobs with links between their buffers, a deformable layer, operations, a plan; else the first case.
CASES = {
    "attention": "random_0_1",
    "conv": "random_1",
    "oram": "small_model",
    "scheduler": "default_u55c_fast_1",
}
OPERATIONS = 40


def case_of(engine):
    cases = find_adapter(engine).cases()
    return next(case for case in cases if CASES.get(engine, case.name) == case.name)


def written(case, directory):
    """Write a case's tensors as a user would give them."""
    if "codes" not in case.tensors:
        np.savez(directory / "in.npz", **case.tensors)
        return {"input": directory / "in.npz"}
    columns = (case.tensors[name][:OPERATIONS] for name in ("codes", "keys", "values"))
    lines = ["op,key,value"]
    for code, key, value in zip(*columns, strict=True):
        name, number = Code(code).name.lower(), int.from_bytes(value.tobytes(), "little")
        lines.append(f"{name},{key},{number if name in ('put', 'load') else ''}")
    (directory / "ops.csv").write_text("\n".join(lines) + "\n")
    return {"ops": directory / "ops.csv"}


@pytest.fixture(scope="module", params=sorted(ENGINES))
def card(request, tmp_path_factory):
    """Return engine and launch folder of a case."""
    engine, directory = request.param, tmp_path_factory.mktemp(request.param)
    case, folder = case_of(engine), directory / "card"
    target = Target.of(engine, case.config, load_board(case.board))
    write_launch(target, find_board(case.board), written(case, directory), folder, seed=3)
    return engine, folder


@pytest.fixture(scope="module")
def replayed(card, tmp_path_factory):
    """Return the same after it was carried out in simulation."""
    engine, folder = card
    replay(folder, work=tmp_path_factory.mktemp("replay"), memory_mode="fast")
    return engine, folder


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_xrt(tmp_path_factory.mktemp("xrt"))


@pytest.mark.sample(2)
def test_a_replay_is_verified_bit_for_bit_and_reported(replayed):
    _, folder = replayed
    done = verify(folder)
    assert done.bit_exact, done.mismatches
    assert (done.report.measured_on, done.report.simulated.memory_mode) == ("simulation", "fast")
    assert done.report.prediction.predicted_read_error_bytes == 0
    assert done.report.prediction.predicted_write_error_bytes == 0
    manifest, compared = read_manifest(folder), 0
    for name, expected in read_expected(folder, manifest).items():
        found = np.fromfile(folder / "results" / f"{name}.bin", np.uint8)
        assert np.array_equal(found & expected.mask, expected.content)
        compared += expected.known_bytes
    assert compared == sum(entry.expected_bytes for entry in manifest.pointers) > 0
    for name in ("launch.json", "results/run.json"):
        jsonschema.validate(json.loads((folder / name).read_text()), json.loads(SCHEMA.read_text()))


@pytest.mark.sample(2)
def test_a_card_that_computes_so_is_verified_too(replayed, library, tmp_path):
    """host.py on a stand-in whose memory gets what the gates wrote, and whose registers what they counted."""
    engine, folder = replayed
    design, manifest = small_design(engine), read_manifest(folder)
    write_host(render(design), tmp_path)
    before = verify(folder)
    counted = json.loads((folder / "results" / "run.json").read_text())["counters"]
    registers = np.zeros(0x400, "<u4")
    for register in design.table.counter_registers:
        count = counted[register.argument.name]
        registers[register.offset // 4 :][:2] = count % 2**32, count >> 32
    registers.tofile(tmp_path / "registers")
    (folder / "results").rename(tmp_path / "gates")
    outputs = {
        index: str(tmp_path / "gates" / f"{entry.name}.bin")
        for index, entry in enumerate(manifest.arguments)
        if entry.kind == "pointer" and entry.output
    }
    (tmp_path / "seen").mkdir()
    environ = {
        **os.environ,
        "PYTHONPATH": str(FAKES),
        "LD_LIBRARY_PATH": str(library),
        "FAKE_LOG": str(tmp_path / "log"),
        "FAKE_SEEN": str(tmp_path / "seen"),
        "FAKE_RESULTS": json.dumps(outputs),
        "FAKE_REGISTERS": str(tmp_path / "registers"),
    }
    command = [sys.executable, "-W", "error", "host.py", str(folder)]
    run = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    given = {buffer.argument: buffer.data for buffer in read_launch(folder).buffers}
    places = {
        entry.name: (tmp_path / "seen" / f"{index}.bin", 0x10_0000_0000 * number)
        for number, (index, entry) in enumerate(
            (index, entry) for index, entry in enumerate(manifest.arguments) if entry.kind == "pointer"
        )
    }
    for entry in manifest.pointers:
        if entry.given:
            expected = given[entry.name].copy()
            for link in entry.links:
                word = expected[link.offset : link.offset + 8].view("<u8")
                word += np.uint64(places[link.argument][1])
            np.testing.assert_array_equal(np.fromfile(places[entry.name][0], np.uint8), expected)
    done = verify(folder)
    assert done.bit_exact, done.mismatches
    report = done.report
    assert report.measured_on == "hardware"
    assert (report.hardware.driver, report.hardware.device) == ("xrt", "card 0")
    assert report.cycles == before.report.cycles
    assert report.traffic.bus_bytes is None
    assert (report.traffic.useful_over_compulsory_ratio is None) == (engine == "oram")


def test_links_are_there_to_be_tested(card):
    engine, folder = card
    links = [link for entry in read_manifest(folder).pointers for link in entry.links]
    assert bool(links) == (engine == "attention")


def test_every_host_script_passes_the_linter_of_this_project(card, tmp_path):
    write_host(render(small_design(card[0])), tmp_path)
    rules = ["--isolated", "--select", "E,F,W,B,UP,SIM", "--line-length", "110"]
    command = [sys.executable, "-m", "ruff", "check", *rules, "host.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


# The folder and the commands, without gates


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a launch folder of the command line's, of a small attention."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.savez("in.npz", **{name: rng.normal(size=(2, 8, 32)) for name in "qkv"})
    (tmp_path / "c.yaml").write_text("lanes: 32\nfolds: 1\nrows: 4\n")
    options = ("--config", "c.yaml", "--input", "in.npz")
    printed = call("launch", "attention", *options, "-o", "card").stdout
    assert "for a loomwork_attention of configuration" in printed
    assert "next: python3 host.py card" in printed
    assert "make -C PACKAGE/tb SIM=icarus LAUNCH=/" in printed
    return tmp_path / "card"


def golden_results(folder):
    """Leave the golden model's bytes as results, as a perfect card would."""
    golden = np.load(folder / "golden.npz")["o"]
    (folder / "results").mkdir()
    units = np.frombuffer(golden.tobytes(), np.uint8).reshape(-1, golden[0, 0].nbytes // 16, 16)
    ports = [entry for entry in read_manifest(folder).pointers if entry.output]
    for number, entry in enumerate(ports):
        content = units[:, number :: len(ports)].reshape(-1)
        padded = np.concatenate([content, np.zeros(entry.size_bytes - content.size, np.uint8)])
        padded.tofile(folder / "results" / f"{entry.name}.bin")
    record = {
        "format": "loomwork-run-1",
        "config_hash": read_manifest(folder).config_hash,
        "counters": None,
        "hardware": {"device": "card 0", "driver": "xrt", "host_wall_seconds": 0.5},
    }
    (folder / "results" / "run.json").write_text(json.dumps(record))
    return record


def test_the_verdict_of_the_command(folder):
    record = golden_results(folder)
    assert "no report: the counters could not be read" in call("verify", "card", "-o", "out.npz").stdout
    np.testing.assert_array_equal(np.load("out.npz")["o_int"], np.load("out.npz")["golden_int"])
    # Its cycles are made up: no more than their sum and the wall time is looked at.
    moved = {"gmem0_read_bytes": 512, "gmem5_write_bytes": 512, "gmem6_write_bytes": 512}
    cycles = {"cycles_total": 900, "cycles_busy": 400, "cycles_stall_memory": 300, "cycles_idle": 201}
    (folder / "results" / "run.json").write_text(json.dumps(record | {"counters": moved | cycles}))
    (line,) = call("verify", "card", status=1).stderr.splitlines()
    assert line.startswith("loomwork: The counters contradict themselves: ")
    cycles["cycles_idle"] = 200
    record["hardware"]["host_wall_seconds"] = 1e-6
    (folder / "results" / "run.json").write_text(json.dumps(record | {"counters": moved | cycles}))
    assert call("verify", "card", status=1).stderr.splitlines() == [
        "loomwork: The counters tell of 512 read bytes, and this launch has 1,536",
        "loomwork: The counters tell of 900 cycles, more than the 1e-06 s of the call have at 891 MHz",
    ]
    record["hardware"]["host_wall_seconds"] = 0.5
    moved["gmem0_read_bytes"] = 1536
    (folder / "results" / "run.json").write_text(json.dumps(record | {"counters": moved | cycles}))
    printed = call("verify", "card", "--report", "r.json").stdout
    assert "on hardware" in printed
    report = load(folder / "report.json")
    assert report == load(folder.parent / "r.json")
    assert (report.measured_on, report.hardware.host_wall_seconds) == ("hardware", 0.5)
    assert "measured on hardware" in (folder / "report.html").read_text()
    record["hardware"]["driver"] = "cocotb"
    (folder / "results" / "run.json").write_text(json.dumps(record | {"counters": moved | cycles}))
    assert "in a testbench, memory without latency" in call("verify", "card").stdout
    report = load(folder / "report.json")
    assert (report.measured_on, report.energy) == ("testbench", None)
    assert "measured in a testbench, memory without latency" in (folder / "report.html").read_text()


@pytest.mark.parametrize("driver", ["cocotb", "OpenCL 3.0", "bare metal"])
def test_a_host_program_has_any_name(folder, driver):
    record = golden_results(folder)
    record["hardware"]["driver"] = driver
    (folder / "results" / "run.json").write_text(json.dumps(record))
    call("verify", "card")


@pytest.mark.parametrize("driver", ["", " ", "a\nb", "x" * 65, 7])
def test_a_host_program_without_a_name_is_refused(folder, driver):
    record = golden_results(folder)
    record["hardware"]["driver"] = driver
    (folder / "results" / "run.json").write_text(json.dumps(record))
    (line,) = call("verify", "card", status=2).stderr.splitlines()
    assert line.startswith("loomwork: card/results/run.json: hardware.driver must be ")


def test_a_wrong_bit_is_found(folder):
    golden_results(folder)
    content = np.fromfile(folder / "results" / "o0.bin", np.uint8)
    content[0] ^= 1
    content.tofile(folder / "results" / "o0.bin")
    assert "o differs in 1 of" in call("verify", "card", status=1).stderr


@pytest.mark.parametrize(
    "name",
    [
        *("launch.json", "golden.npz", "inputs/input.npz", "board.yaml", "report.json"),
        *("expected/o0.bin", "results/o0.bin", "results/run.json", "buffers/q0.bin"),
    ],
)
def test_a_verdict_replaces_nothing_it_rests_on(folder, name):
    golden_results(folder)
    line = refused("verify", "card", "-o", f"card/{name}")
    assert line == f"--output must be another file than the launch folder's own, not 'card/{name}'"


def test_golden_results_of_other_inputs_are_no_golden_results(folder):
    golden_results(folder)
    tensors = dict(np.load(folder / "inputs" / "input.npz"))
    np.savez(folder / "inputs" / "input.npz", **tensors | {"v": -tensors["v"]})
    message = (
        "golden results must be what the golden model makes of the folder's inputs, not 'card/golden.npz'"
    )
    assert refused("verify", "card") == message


def test_a_call_of_other_inputs_has_no_verdict(folder):
    golden_results(folder)
    buffer = folder / "buffers" / "q0.bin"
    kept = buffer.read_bytes()
    buffer.write_bytes(bytes(len(kept)))
    legal = "as the folder's inputs make it; make the launch again"
    assert refused("verify", "card") == f"buffer must be {legal}, not 'card/buffers/q0.bin'"
    buffer.write_bytes(kept)
    arguments = json.loads((folder / "launch.json").read_text())["arguments"]
    scalar = next(entry for entry in arguments if entry["kind"] == "scalar")
    scalar["value"] ^= 1
    change(folder / "launch.json", arguments=arguments)
    name = scalar["name"]
    assert refused("verify", "card") == f"argument of card/launch.json must be {legal}, not '{name}'"


@pytest.mark.parametrize("suffix", ["bin", "mask"])
def test_expected_bytes_of_other_results_have_no_verdict(folder, suffix):
    golden_results(folder)
    path = folder / "expected" / f"o0.{suffix}"
    content = np.fromfile(path, np.uint8)
    content[0] ^= 1
    content.tofile(path)
    legal = "as the folder's inputs make it; make the launch again"
    assert refused("verify", "card") == f"expected bytes must be {legal}, not 'card/expected/o0.{suffix}'"
    path.unlink()
    assert refused("verify", "card").startswith("buffer file must be readable")


def test_expected_bytes_are_those_of_the_golden_model(folder):
    golden_results(folder)
    outputs = [entry for entry in read_manifest(folder).pointers if entry.output]
    total = sum(entry.expected_bytes for entry in outputs)
    assert total == np.load(folder / "golden.npz")["o"].nbytes
    for entry in outputs:
        content, mask = (
            np.fromfile(folder / "expected" / f"{entry.name}.{s}", np.uint8) for s in ("bin", "mask")
        )
        assert np.array_equal(content, np.fromfile(folder / "results" / f"{entry.name}.bin", np.uint8))
        assert np.array_equal(mask, np.where(np.arange(mask.size) < entry.expected_bytes, 255, 0))


def test_a_second_launch_replaces_the_first_with_its_results(folder):
    golden_results(folder)
    call("launch", "attention", "--config", "c.yaml", "--input", "in.npz", "-o", "card")
    assert not (folder / "results").exists()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["c.yaml", "card", "in.npz"]


def test_what_is_no_launch_is_not_replaced(folder):
    (folder.parent / "mine").mkdir()
    (folder.parent / "mine" / "thesis.txt").write_text("")
    options = ("--config", "c.yaml", "--input", "in.npz", "-o", "mine")
    message = "launch folder must be new, empty, or a launch folder to replace, not 'mine'"
    assert refused("launch", "attention", *options) == message
    assert refused("verify", "mine").startswith(
        "launch folder must be one that `loomwork launch` wrote, with"
    )


def test_a_second_launch_replaces_nothing_else(folder):
    (folder / "notes.txt").write_text("mine")
    options = ("--config", "c.yaml", "--input", "in.npz", "-o", "card")
    message = "launch folder must be without files of others, which would be replaced, not 'card/notes.txt'"
    assert refused("launch", "attention", *options) == message
    assert (folder / "notes.txt").read_text() == "mine"


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_damage_is_one_line(folder):
    assert refused("verify", "card").startswith("launch folder must be run before: card/results/run.json")
    golden_results(folder)
    change(folder / "results" / "run.json", config_hash="0" * 12)
    assert refused("verify", "card").startswith("config_hash of card/results/run.json must be ")
    change(folder / "results" / "run.json", config_hash=read_manifest(folder).config_hash)
    (folder / "results" / "o0.bin").write_bytes(b"short")
    assert refused("verify", "card").startswith("bytes of card/results/o0.bin must be ")
    (folder / "buffers" / "q0.bin").unlink()
    assert refused("replay", "card").startswith("buffer file must be readable (No such file")
    config = json.loads((folder / "launch.json").read_text())["config"]
    (folder / "results" / "o0.bin").write_bytes(bytes(1024))
    change(folder / "launch.json", config=config | {"rows": 8})
    assert "make the launch again with this Loomwork, not" in refused("verify", "card")
    change(folder / "launch.json", config=config | {"rows": -1})
    assert "card/launch.json: config.rows must be " in refused("verify", "card")
    change(folder / "launch.json", format="loomwork-launch-0")
    assert refused("verify", "card").startswith("format of card/launch.json must be 'loomwork-launch-1', not")
    (folder / "launch.json").write_text("{")
    assert refused("verify", "card").startswith("file must be JSON")


def test_what_no_host_does_is_no_launch():
    buffer = Buffer(argument="a", data=None, size_bytes=8)
    tampered = FaultyLaunch(scalars={}, buffers=(buffer,), tampers=(Tamper("a", 0, 0, 0, 0, 1, 1),))
    with pytest.raises(InputError, match=r"^tampers must be left out: a launch folder is one call"):
        Manifest.of(tampered, {}, {})
    with pytest.raises(InputError, match=r"^further calls must be left out"):
        Manifest.of(Launch(scalars={}, buffers=(buffer,), then=({},)), {}, {})


def test_the_committed_schema_is_that_of_the_format():
    assert SCHEMA.read_text() == schema_text()
