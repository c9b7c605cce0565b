"""The command line: thin, quick to start, one line for what a user can mend, and a status that tells."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import hw.config
import sim.run.run as sim_run
from hw.attention.engine import AttentionEngine
from hw.attention.kernel.arguments import argument_table
from hw.board.files import find_board, load_board
from hw.config import config_dict
from hw.errors import InputError, ToolError
from hw.registry import ENGINES
from sim.build.design import kernel_design
from sim.build.doctor import Finding
from sim.engines.attention.adapter import ADAPTER
from sim.run.result import RunResult
from tests.support.command_line import call, refused

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tensors(**changes):
    """Write a small input file, with tensors changed, left out (None) or added."""
    rng = np.random.default_rng(0)
    data = {name: rng.integers(-128, 128, (2, 24, 32), dtype=np.int8) for name in ("q", "k", "v")}
    data |= {f"{name}_scale": np.float64(0.02) for name in ("q", "k", "v")}
    data = {name: value for name, value in (data | changes).items() if value is not None}
    np.savez("in.npz", **data)
    Path("c.yaml").write_text("lanes: 32\nfolds: 1\nrows: 4\n")


def sim(*words):
    return ("sim", "attention", "--config", "c.yaml", "--input", "in.npz", "--output", "out.npz", *words)


def test_help_starts_quickly_and_loads_nothing_heavy():
    code = """if True:
        import sys
        sys.argv[1:] = ["--help"]
        from sim.cli.main import main
        try:
            main()
        except SystemExit:
            print([name for name in ("numpy", "pydantic", "plotly", "cocotb") if name in sys.modules])
    """
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"
    for command in ("verilog", "sim", "report", "boards", "doctor", "demo", "calibrate", "schema", "engines"):
        assert re.search(rf"^  {command} ", out.stdout, re.MULTILINE)


def test_boards_are_listed_and_one_is_printed_with_sources():
    listed = call("boards").stdout
    for name in ("u55c", "u280", "u50", "zcu104", "ultra96v2"):
        assert re.search(rf"^ {name} ", listed, re.MULTILINE)
    one = call("boards", "u55c").stdout
    assert re.search(r"device\.lut +1303680 +\[\d\]", one)
    assert "PG276" in one
    assert re.search(r"attention +fits, with \d+% of the DSP", one)
    refused_oram = r"oram +board must be one with access to the host's memory"
    assert re.search(refused_oram, call("boards", "zcu104").stdout)
    path = ROOT / "boards" / "u55c.yaml"
    assert call("boards", path).stdout == one


def test_engines_are_listed():
    listed = call("engines").stdout
    for name in ENGINES:
        assert re.search(rf"^ {name} ", listed, re.MULTILINE)


def test_a_schema_is_printed_or_written():
    printed = call("schema", "attention").stdout
    assert "lanes" in json.loads(printed)["properties"]
    call("schema", "attention", "--output", "s.json")
    assert Path("s.json").read_text() == printed
    assert refused("schema", "attention", "--output", "none/s.json").startswith(
        "--output must be in a directory that exists"
    )


@pytest.mark.parametrize("command", [("verilog", "--engine"), ("schema",), ("sim",)])
def test_an_unknown_engine_is_refused(command):
    tensors()
    files = ("--input", "in.npz", "--output", "out.npz") if command == ("sim",) else ()
    known = ", ".join(sorted(ENGINES))
    assert refused(*command, "attentoin", *files) == (
        f"engine must be one of {known}, not 'attentoin'; did you mean 'attention'?"
    )


def test_an_unknown_board_is_refused():
    tensors()
    legal = "one of aupzu3, kv260, u250, u280, u50, u55c, ultra96v2, zcu104, or a path to a .yaml file"
    message = f"board must be {legal}, not 'u56'; did you mean 'u50'?"
    assert refused("verilog", "--board", "u56") == message
    assert refused("boards", "u56") == message
    assert refused(*sim("--board", "u56")) == message
    assert refused("boards", "mine.yaml") == "board file must be a file that exists, not 'mine.yaml'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lane: 32\n", "c.yaml:1: key must be one of rows, lanes, "),
        ("\nrows: 0\n", "c.yaml:2: rows must be from 1 to 64, not 0"),
        ("rows: 4.5\n", "c.yaml:1: rows must be a whole number, not 4.5"),
        ("rows: '4'\n", "c.yaml:1: rows must be a whole number, not '4'"),
        ("lanes: 40\n", "c.yaml:1: lanes must be a multiple of 16 from 16 to 128, not 40"),
    ],
)
def test_a_bad_configuration_is_refused_before_any_work(text, message):
    tensors()
    Path("c.yaml").write_text(text)
    assert refused(*sim()).startswith(message)
    assert refused("verilog", "--config", "c.yaml").startswith(message)
    assert not Path("build").exists()


def test_a_missing_configuration_or_input_is_refused():
    assert refused("verilog", "--config", "no.yaml").startswith("file must be a readable file (No such file")
    tensors()
    Path("in.npz").unlink()
    assert refused(*sim()) == "--input must be a file that exists, not 'in.npz'"


def test_an_engine_larger_than_the_board_is_refused():
    tensors()
    Path("c.yaml").write_text("lanes: 64\nrows: 64\n")
    for words in (sim("--board", "ultra96v2"), ("verilog", "--board", "ultra96v2", "--config", "c.yaml")):
        message = refused(*words)
        assert re.fullmatch(
            r"(LUT|FF|DSP|BRAM36) of attention must be at most \d+, what ultra96v2 has for kernels, not \d+",
            message,
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "tensor q must be given as"),
        ({"z": np.zeros(1)}, "tensor name must be one of "),
        ({"q": np.zeros((2, 4, 32), np.int32)}, "dtype of q must be int8 or floating point, not 'int32'"),
        ({"q": np.full((2, 4, 32), np.nan)}, "tensor q must be finite everywhere, not 'NaN or infinity'"),
        ({"q": np.zeros((2, 4, 40), np.int8)}, "head size of q must be from 1 to 32"),
        ({"q": np.zeros((3, 4, 32), np.int8)}, "heads of q must be a multiple of the 2 heads of k, not 3"),
        ({"v": np.zeros((2, 23, 32), np.int8)}, "shape of v must be [2, 24, ...], as k"),
        ({"q": np.zeros((4, 32), np.int8)}, "shape of q must be [heads, tokens, size], not (4, 32)"),
        ({"q": np.zeros((2, 0, 32), np.int8)}, "tokens of q must be at least 1, not 0"),
        ({"q_scale": None}, "q_scale must be given beside an int8 q, not 'missing'"),
        (
            {"k_scale": np.float64(-1)},
            "k_scale must be one positive number, or one for each of 2 heads, not -1.0",
        ),
        ({"softmax_scale": np.array(["x"])}, "dtype of softmax_scale must be a number type, not '<U1'"),
    ],
)
def test_bad_tensors_are_refused_by_name(changes, message):
    tensors(**changes)
    assert refused(*sim("--backend", "golden")).startswith(message)
    assert not Path("out.npz").exists()


def test_outputs_that_cannot_be_written_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("sim.run.run.run", lambda *_, **__: pytest.fail("worked"))
    tensors()
    Path("folder").mkdir()
    Path("file").write_text("")
    end = ("--input", "in.npz", "--config", "c.yaml")
    start = ("sim", "attention", "--output")
    assert refused(*start, "no/o.npz", *end) == "--output must be in a directory that exists, not 'no/o.npz'"
    assert refused(*start, "folder", *end) == "--output must be a file, and this is a directory, not 'folder'"
    assert refused(*sim("--report", "file/r.json")).startswith("--report must be in a directory that exists")
    assert (
        refused(*sim("--report", "out.npz")) == "--report must be another file than --output, not 'out.npz'"
    )
    assert refused(*start, "in.npz", *end) == "--output must be another file than --input, not 'in.npz'"
    assert refused(*start, "c.yaml", *end) == "--output must be another file than --config, not 'c.yaml'"
    Path("b.yaml").write_bytes(find_board("u55c").read_bytes())
    message = "--report must be another file than --board, not 'b.yaml'"
    assert refused(*sim("--report", "b.yaml", "--board", "b.yaml")) == message
    assert refused("verilog", "--output", "file/v").startswith(
        "--output must be a directory, and file is a file"
    )
    assert refused("report", "r.json", "--output", "no/p.html").startswith("--output must be in a directory")


def test_the_golden_backend_answers_as_the_engine_would():
    tensors()
    call(*sim("--backend", "golden"))
    with np.load("out.npz") as out:
        assert set(out.files) == {"o", "o_int", "o_scale", "golden_int"}
        np.testing.assert_array_equal(out["o_int"], out["golden_int"])
        np.testing.assert_allclose(out["o"], out["o_int"] * out["o_scale"], rtol=1e-6)
        assert out["o"].shape == (2, 24, 32)


def test_what_only_gates_have_is_refused_of_the_golden_backend():
    tensors()
    assert refused(*sim("--backend", "golden", "--report", "r.json")).startswith("--report must be left out")
    assert refused(*sim("--backend", "golden", "--waves")).startswith("--waves must be left out")


def test_what_only_data_give_is_refused_of_a_simulation_of_control_alone():
    tensors()
    computed = ("sim", "attention", "--config", "c.yaml", "--input", "in.npz", "--no-data")
    message = "must be left out with --no-data: nothing is computed"
    assert refused(*sim("--no-data")) == f"--output {message}, not 'out.npz'"
    assert refused(*computed, "--waves").startswith(f"--waves {message}")
    assert refused(*computed, "--backend", "golden").startswith("--no-data must be left out")


@pytest.mark.parametrize("engine", ["oram", "scheduler"])
def test_an_engine_whose_control_waits_for_data_is_not_simulated_without_them(engine):
    message = (
        f"engine must be one whose control waits for no data, for a control-only simulation, not {engine!r}"
    )
    assert refused("sim", engine, "--no-data") == message
    assert not Path("build").exists()


def fake_run(seen, *, mismatches=()):
    def run(engine, config, board, given, **options):
        seen.update(options, engine=engine, board=board.name, rows=config.rows, names=sorted(given))
        ones = np.ones(2, np.int16)
        if options["waves"]:
            options["waves"].write_text("")
        return RunResult(
            outputs={"o": ones * 0.5, "o_int": ones, "o_scale": np.float64(0.5)},
            integers={"o": ones},
            golden={"o": ones},
            mismatches=mismatches,
            waves=options["waves"],
        )

    return run


def test_options_reach_the_run(monkeypatch):
    seen = {}
    monkeypatch.setattr("sim.run.run.run", fake_run(seen))
    tensors()
    result = call(*sim("--seed", 7, "--memory", "jitter", "--waves", "--board", "u280"))
    assert (seen["engine"], seen["board"], seen["rows"]) == ("attention", "u280", 4)
    assert (seen["seed"], seen["memory_mode"], seen["backend"]) == (7, "jitter", "rtl")
    assert seen["waves"] == Path("out.vcd").absolute()
    assert seen["names"] == ["k", "k_scale", "q", "q_scale", "v", "v_scale"]
    assert result.stdout.split() == ["out.npz", str(Path("out.vcd").absolute())]
    call(*sim())
    assert (seen["seed"], seen["memory_mode"], seen["waves"]) == (0, "model", None)


def test_a_replay_and_the_demo_record_waveforms_on_request(monkeypatch):
    asked = []
    monkeypatch.setattr("sim.cli.launch.replay", lambda folder, *, waves, **_: asked.append(waves) or waves)
    monkeypatch.setattr("sim.run.demo.demo", lambda *_, waves: asked.append(waves) or True)
    beside = Path("a card.vcd").absolute()
    assert call("replay", "a card", "--waves").stdout.splitlines() == ["a card/results", str(beside)]
    assert call("replay", "a card").stdout.splitlines() == ["a card/results"]
    call("demo", "--waves")
    assert asked == [beside, None, True]


def test_one_wrong_bit_is_status_1_and_the_outputs_are_there_to_be_looked_at(monkeypatch):
    monkeypatch.setattr("sim.run.run.run", fake_run({}, mismatches=("o differs in 1 of 2 elements",)))
    tensors()
    result = call(*sim(), status=1)
    assert result.stderr == "loomwork: o differs in 1 of 2 elements\n"
    assert Path("out.npz").exists()


def test_an_illegal_option_is_a_usage_error():
    tensors()
    for words, said in (
        (("--seed", "-1"), "'--seed'"),
        (("--seed", "x"), "'--seed'"),
        (("--memory", "slow"), "'--memory'"),
        (("--backend", "board"), "'--backend'"),
    ):
        assert said in call(*sim(*words), status=2).stderr


def test_files_are_left_out_where_the_engine_needs_none(monkeypatch):
    seen = {}
    monkeypatch.setattr("sim.run.run.run", fake_run(seen))
    Path("c.yaml").write_text("rows: 4\n")
    result = call("sim", "attention", "--config", "c.yaml")
    assert seen["names"] == []
    assert seen["waves"] is None
    assert result.stdout == ""
    assert sorted(path.name for path in Path().glob("*.npz")) == []
    assert (
        refused("sim", "attention", "--waves") == "--output must be given: waveforms lie beside it, not None"
    )
    message = "--output must be given: nothing else comes of the golden backend, not None"
    assert refused("sim", "attention", "--backend", "golden") == message


def test_an_engine_that_needs_tensors_says_so():
    assert refused("sim", "attention").startswith("tensor q must be given as")


def test_a_missing_tool_is_one_line(monkeypatch):
    def run(*_, **__):
        raise ToolError("Verilator is missing; install it")

    monkeypatch.setattr("sim.run.run.run", run)
    tensors()
    assert refused(*sim()) == "Verilator is missing; install it"


def test_ctrl_c_is_status_130_and_one_line_and_leaves_nothing(monkeypatch):
    def run(*_, directory, **__):
        (directory / "simulation").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.run.run.run", run)
    tensors()
    assert call(*sim(), status=130).stderr == "\nloomwork: interrupted\n"
    assert not list(Path("build/run").iterdir())
    assert not Path("out.npz").exists()


def test_what_speaks_of_a_failed_run_stays(monkeypatch):
    def run(*_, directory, **__):
        directory.mkdir(parents=True)
        (directory / "log").write_text("why")
        raise ToolError("it failed")

    monkeypatch.setattr("sim.run.run.run", run)
    tensors()
    refused(*sim())
    (left,) = Path("build/run").iterdir()
    assert (left / "log").read_text() == "why"


def test_a_report_that_is_none_is_refused():
    Path("r.json").write_text("{}")
    assert refused("report", "r.json").startswith("report file must be a report of format")
    assert refused("report", "no.json").startswith("report file must be a file that exists")
    assert not Path("report.html").exists()


def test_doctor_fails_only_for_what_is_required(monkeypatch):
    good = Finding(name="a", ok=True, found="1", advice="")
    bad = Finding(name="b", ok=False, found="none", advice="get b", required=False)
    monkeypatch.setattr("sim.build.doctor.examine", lambda: [good, bad])
    assert "get b" in call("doctor").stdout
    monkeypatch.setattr(
        "sim.build.doctor.examine", lambda: [good, Finding(name="b", ok=False, found="", advice="")]
    )
    call("doctor", status=1)


@pytest.mark.parametrize(
    ("command", "function"),
    [("demo", "sim.run.demo.demo"), ("calibrate", "sim.calibration.calibrate.calibrate")],
)
def test_the_verdict_of_demo_and_calibrate_is_the_status(monkeypatch, command, function):
    monkeypatch.setattr(function, lambda *_, **__: True)
    call(command)
    monkeypatch.setattr(function, lambda *_, **__: False)
    call(command, status=1)

    def fail(*_, **__):
        raise InputError("directory", "build", "writable")

    monkeypatch.setattr(function, fail)
    assert refused(command) == "directory must be writable, not 'build'"


def test_a_command_makes_the_table_once_and_asks_once_whether_the_engine_fits(monkeypatch):
    case = next(iter(ADAPTER.cases()))
    np.savez("in.npz", **case.tensors)
    Path("c.yaml").write_text(json.dumps(config_dict(case.config)))
    kernel_design(AttentionEngine(), case.config, load_board(case.board))  # generating asks once more
    counted, check = Counter(), hw.config.check_fits
    for module in (hw.config, sim_run):
        monkeypatch.setattr(module, "check_fits", lambda *given: counted.update(["fits"]) or check(*given))
    files = ("--config", "c.yaml", "--input", "in.npz", "--output", "out.npz")
    argument_table.cache_clear()
    call("sim", "attention", "--board", case.board, "--memory", case.memory, *files)
    assert (argument_table.cache_info().misses, counted["fits"]) == (1, 1)


def test_a_misspelt_choice_has_a_hint():
    assert "Did you mean 'jitter'?" in call("replay", "folder", "--memory", "jiter", status=2).stderr
