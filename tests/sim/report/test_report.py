"""The report: its figures agree with each other, its file with its schema, and nothing foreign is loaded."""

import dataclasses
import json
import re
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from hw.energy import load_coefficients
from hw.errors import InputError
from sim.report import report as report_module
from sim.report.figures import TABLE, lines
from sim.report.forecast import FORECAST
from sim.report.report import ADAPTER, load, save
from sim.report.schema import PAGE, SCHEMA, glossary, page_text, schema_text
from sim.run.accounting import build_report, git_revision
from tests.support.pages.reports import arguments, synthetic

#: Every number's name ends in its unit, or is one of these counts and labels that have none.
UNITS = (
    "bytes", "cycle", "cycles", "macs", "ratio", "mhz", "microseconds", "second", "seconds", "byte",
    "picojoules", "watts",
)  # fmt: skip
UNITLESS = ("channel", "seed")


def violations(value):
    """Check a JSON value against the committed schema."""
    return list(jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(value))


def saved(tmp_path, **changes):
    path = tmp_path / "report.json"
    save(synthetic(**changes), path)
    return json.loads(path.read_text())


def leaves(value, prefix=""):
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from leaves(entry, f"{prefix}.{name}" if prefix else name)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry, f"{prefix}[]")
    else:
        yield prefix, value


# Figures ----------------------------------------------------------------------------------------------------


def test_figures_follow_from_the_counters():
    report = synthetic()
    passes = 12 * 8
    total = passes * 256 + 310 + 190
    assert report.cycles.cycles_total == total
    assert report.cycles.cycles_stall == {"keys": 207, "output": 103}
    assert report.cycles.kernel_microseconds == pytest.approx(total / 300)
    assert report.work.mac_utilization_ratio == pytest.approx(2 * 12 * 256 * 256 * 32 / (total * 2048))
    assert report.work.macs_per_second == pytest.approx(2 * 12 * 256 * 256 * 32 / (total / 300e6))
    assert report.traffic.compulsory_bytes == 12 * 256 * 32 * 5
    assert report.traffic.useful_bytes == 12 * 256 * 32 * 3 + 2 * passes * 256 * 32
    assert report.traffic.bus_bytes == report.traffic.useful_bytes + 3 * 64
    assert [channel.channel for channel in report.traffic.channels] == [0, 1, 2]
    assert report.traffic.channels[0].useful_write_bytes == 2 * 12 * 256 * 32
    assert report.traffic.channels[2].events == {"row_hits": 180, "row_misses": 4, "refreshes": 11}
    assert report.roofline.compute_bound_cycles == 2 * 12 * 256 * 256 * 32 // 2048
    assert report.roofline.memory_bound_cycles == 12 * 256 * 32 * 5 // 96
    assert report.roofline.bound_by == "compute"
    assert report.roofline.cycles_over_bound_ratio == pytest.approx(total / (passes * 256))
    assert report.prediction.predicted_cycles_error_ratio == pytest.approx(
        (passes * 256 + 200 - total) / total
    )
    assert report.prediction.predicted_read_error_bytes == 0
    assert report.simulation.simulated_cycles_per_second == pytest.approx((total + 400) / 0.4)
    assert report.details == {"heads": 12, "queries": 256, "keys": 256, "tiles": passes * 4}


def test_jobs_have_cycles_measured_and_predicted():
    prediction = dataclasses.replace(arguments()["prediction"], job_cycles=(7_000, 9_000))
    report = synthetic(prediction=prediction, job_cycles={"a": 7_100, "b": 9_200})
    assert report.cycles.job_cycles == {"a": 7_100, "b": 9_200}
    assert report.prediction.predicted_job_cycles == {"a": 7_000, "b": 9_000}
    total = report.cycles.cycles_total
    with pytest.raises(InputError, match=f"job_cycles must be at most cycles_total = {total} in all"):
        synthetic(prediction=prediction, job_cycles={"a": 1, "b": total})


def test_memory_binds_when_it_is_the_slower():
    prediction = dataclasses.replace(arguments()["prediction"], memory_bytes_per_cycle=1.5)
    roofline = synthetic(prediction=prediction).roofline
    assert roofline.bound_by == "memory"
    assert roofline.bound_cycles == 12 * 256 * 32 * 5 * 2 // 3


def test_an_engine_without_multipliers_has_a_report():
    prediction = dataclasses.replace(arguments()["prediction"], useful_macs=0, mac_slots_per_cycle=0)
    report = synthetic(prediction=prediction)
    assert report.work.mac_utilization_ratio == 0
    assert report.roofline.bound_by == "memory"


def test_two_memories_and_ports_that_the_kernel_does_not_count():
    given = arguments()
    host = {
        "memory": "host",
        "channel": 0,
        "bus_read_bytes": 640,
        "bus_write_bytes": 128,
        "events": {},
        "ports": {
            "host0": {"read_bytes": 512, "write_bytes": 128},
            "host1": {"read_bytes": 128, "write_bytes": 0},
        },
    }
    gmem1 = given["counters"].pop("gmem1_read_bytes")
    given["memory"][1]["ports"] = {"gmem1": {"read_bytes": gmem1 + 64, "write_bytes": 0}}
    given["counters"] |= {"host1_read_bytes": 100}
    plain, report = synthetic(), synthetic(counters=given["counters"], memory=[*given["memory"], host])
    assert {(port.port, port.channel): port.useful_bytes for port in report.traffic.ports} == {
        (port.port, port.channel): port.useful_bytes for port in plain.traffic.ports
    } | {("gmem1", 1): gmem1 + 64, ("host0", 0): 640, ("host1", 0): 100}
    assert [memory.memory for memory in report.traffic.memories] == ["hbm", "host"]
    (hbm, of_host), (before,) = report.traffic.memories, plain.traffic.memories
    assert (of_host.useful_read_bytes, of_host.useful_write_bytes) == (612, 128)
    assert (of_host.bus_read_bytes, of_host.bus_write_bytes) == (640, 128)
    assert hbm.useful_bytes == before.useful_bytes + 64
    assert report.traffic.channels[-1].useful_bytes == 740
    # The prediction is of what the kernel counts.
    assert report.prediction.predicted_read_error_bytes == gmem1 - 100
    assert report.prediction.predicted_write_error_bytes == 0
    assert "host1_read_bytes" not in report.details


def test_revision_is_that_of_this_checkout():
    revision = git_revision()
    if (Path(report_module.__file__).parents[2] / ".git").exists():
        assert revision is not None
        assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", revision)
    else:
        assert revision is None


# Contradictions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counters", "complaint"),
    [
        ({"cycles_idle": 191}, "cycles_total must be busy \\+ stalls \\+ idle"),
        ({"cycles_stall_new_cause": 1}, "cycles_total must be busy \\+ stalls \\+ idle"),
        ({"gmem1_read_bytes": 10**9}, "useful_read_bytes of hbm must be at most"),
        ({"cycles_total": 0}, "cycles_total"),
        ({"cycles_busy": -1}, "cycles_busy"),
    ],
)
def test_refuses_counters_that_do_not_add_up(counters, complaint):
    given = arguments()
    with pytest.raises(InputError, match=complaint):
        synthetic(counters=given["counters"] | counters)


def test_refuses_missing_counters():
    counters = arguments()["counters"]
    del counters["cycles_busy"]
    with pytest.raises(InputError, match="such that cycles_busy is among them"):
        synthetic(counters=counters)


@pytest.mark.parametrize("difference_cycles", [-1, 65])
def test_refuses_a_counter_the_testbench_does_not_confirm(difference_cycles):
    given = arguments()
    seen = given["counters"]["cycles_total"] + difference_cycles
    facts = given["simulation"] | {"cycles_start_to_done": seen}
    with pytest.raises(InputError, match="cycles_start_to_done must be from"):
        synthetic(simulation=facts)


def test_refuses_more_useful_work_than_slots():
    prediction = dataclasses.replace(arguments()["prediction"], mac_slots_per_cycle=1024)
    with pytest.raises(InputError, match="mac_utilization_ratio"):
        synthetic(prediction=prediction)


@pytest.mark.parametrize(
    "changes",
    [
        {"clock_mhz": 0.0},
        {"simulation": arguments()["simulation"] | {"memory_mode": "quick"}},
        {"config_hash": "none"},
        {"errors": {"relative_rms_error": float("nan")}},
        {"engine": ""},
        {"simulation": arguments()["simulation"] | {"run_seconds": 0.0}},
        {"bit_exact": None},
        {"simulation": arguments()["simulation"] | {"control_only": True}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_refuses_senseless_arguments(changes):
    with pytest.raises(InputError):
        synthetic(**changes)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        synthetic().bit_exact = False


# Names and schema -------------------------------------------------------------------------------------------


def test_committed_schema_and_page_are_those_of_the_format():
    assert SCHEMA.read_text() == schema_text()
    assert PAGE.read_text() == page_text()


def test_a_report_fits_the_schema(tmp_path):
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text()))
    assert not violations(saved(tmp_path))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("cycles", "cycles_busy"), "many"),
        (("cycles", "cycles_busy"), -1),
        (("cycles", "cycles_total"), None),
        (("bit_exact",), 1),
        (("roofline", "bound_by"), "luck"),
        (("config_hash",), "0123"),
        (("surprise",), 1),
        (("traffic", "channels"), [{}]),
    ],
)
def test_schema_and_loader_refuse_the_same(tmp_path, place, value):
    body = saved(tmp_path)
    part = body
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    assert violations(body)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(body))
    with pytest.raises(InputError, match=rf"report of format loomwork-report-1 \(.*{place[-1]}"):
        load(path)


def test_every_number_has_its_unit_in_its_name(tmp_path):
    for name, value in leaves(saved(tmp_path)):
        parts = name.replace("[]", "").split(".")
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if parts[0] in ("config", "details", "errors") or "events" in parts:
            continue  # named by the engine and the memory model
        named = parts[-2] if parts[-2:-1] in (["cycles_stall"], ["source_picojoules"]) else parts[-1]
        words = named.split("_")
        assert words[-1] in UNITS or words[0] in UNITS or named in UNITLESS, name


def test_glossary_explains_every_field(tmp_path):
    words = glossary()
    assert all(len(text) > 8 and text.endswith(".") for text in words.values())
    for name, _ in leaves(saved(tmp_path)):
        parents = [name, name.rpartition(".")[0]]
        assert any(parent in words for parent in parents), name


# Files ------------------------------------------------------------------------------------------------------


def test_comes_back_as_it_was(tmp_path):
    report = synthetic(label="twelve heads")
    path = tmp_path / "new" / "report.json"
    save(report, path)
    assert load(path) == report
    assert [file.name for file in path.parent.iterdir()] == ["report.json"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": "loomwork-report-0"}', "\x00\xff", '{"cycles": 12}'],
    ids=["empty", "cut", "list", "null", "version", "binary", "foreign"],
)
def test_refuses_a_file_that_is_no_report(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(
        InputError, match=r"^report file must be a report of format loomwork-report-1"
    ) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_names_the_command_that_shows_predictions(tmp_path):
    path = tmp_path / "prediction.json"
    path.write_text(json.dumps({"format": FORECAST}, indent=2))
    with pytest.raises(InputError, match=r"`loomwork sweep` makes pages of predictions, not '.*a pred"):
        load(path)


def test_refuses_a_report_whose_figures_were_edited(tmp_path):
    for place, value in (("useful_macs", 1000), ("mac_utilization_ratio", 0.99)):
        body = saved(tmp_path)
        body["work"][place] = value
        path = tmp_path / "edited.json"
        path.write_text(json.dumps(body))
        with pytest.raises(InputError, match="mac_utilization_ratio must be what the counters give"):
            load(path)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="report file must be a file that exists"):
        load(tmp_path / "none.json")


def test_refuses_an_unwritable_place(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="output file must be writable"):
        save(synthetic(), blocked / "report.json")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    save(synthetic(label="old"), path)

    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sim.host.files.os.replace", fail)
    with pytest.raises(InputError, match="No space left"):
        save(synthetic(label="new"), path)
    assert load(path).label == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


# Hardware -----------------------------------------------------------------------------------------------

ON_HARDWARE = {"device": "card 0", "driver": "xrt", "host_wall_seconds": 1.5e-3}


def hardware(**changes):
    given = arguments() | {"simulation": None, "hardware": ON_HARDWARE}
    silent = {"bus_read_bytes": None, "bus_write_bytes": None, "events": {}}
    given["memory"] = [entry | silent | {"ports": dict.fromkeys(entry["ports"])} for entry in given["memory"]]
    return build_report(**(given | changes))


def test_a_report_of_hardware_says_so_and_what_nobody_counted(tmp_path):
    report = hardware()
    assert (report.measured_on, report.simulation) == ("hardware", None)
    assert report.hardware.host_wall_seconds == 1.5e-3
    assert report.traffic.bus_bytes is None
    assert report.traffic.useful_bytes == synthetic().traffic.useful_bytes
    save(report, tmp_path / "r.json")
    assert load(tmp_path / "r.json") == report
    assert not violations(json.loads((tmp_path / "r.json").read_text()))
    with pytest.raises(InputError, match=r"^measured_on must be simulation where"):
        _ = report.simulated


def test_a_testbench_is_no_hardware():
    """Its memory answers without latency: no energy, and another word than hardware's."""
    assert hardware().energy is not None
    report = hardware(hardware=ON_HARDWARE | {"driver": "cocotb"})
    assert (report.measured_on, report.simulation, report.energy) == ("testbench", None, None)
    assert not violations(ADAPTER.dump_python(report, mode="json"))
    row = next(line for line in lines([report], TABLE["Correctness"]) if line.label == "measured")
    assert row.cells == ("in a testbench, memory without latency",)
    document = ADAPTER.dump_python(hardware(), mode="json")
    with pytest.raises(ValidationError, match="null in a testbench"):
        ADAPTER.validate_json(json.dumps(document | {"measured_on": "testbench"}))


def test_bytes_of_a_port_that_nobody_counts_have_no_ratio():
    counters = {name: n for name, n in arguments()["counters"].items() if not name.startswith("gmem2")}
    report = hardware(counters=counters)
    assert [port.port for port in report.traffic.ports] == ["gmem0", "gmem1"]
    assert report.traffic.useful_over_compulsory_ratio is None


def test_a_run_is_of_one_source():
    document = ADAPTER.dump_python(hardware(), mode="json")
    with pytest.raises(ValidationError, match="given as measured_on says"):
        ADAPTER.validate_json(json.dumps(document | {"measured_on": "simulation"}))


# Energy -----------------------------------------------------------------------------------------------------


def test_energy_is_that_of_the_counted_activity():
    report = synthetic()
    found, cycles = report.energy, report.cycles
    assert sum(found.source_picojoules.values()) == pytest.approx(found.energy_total_picojoules)
    assert found.average_watts == pytest.approx(
        found.energy_total_picojoules * 1e-6 / cycles.kernel_microseconds
    )
    memory, (traffic,) = load_coefficients().memories["hbm2"], report.traffic.memories
    for way in ("read", "write"):
        counted = getattr(traffic, f"bus_{way}_bytes") * memory[way].value
        assert found.source_picojoules[f"memory_{way}"] == pytest.approx(counted)
    assert found.source_picojoules["host_link"] == 0


def test_rows_that_the_memory_model_counts_decide_over_streams():
    memory = [
        channel | {"events": {"activates": 10 * (channel["channel"] < 3)}}
        for channel in arguments()["memory"]
    ]
    counted = synthetic(memory=memory).energy.source_picojoules["memory_activate"]
    assert counted == pytest.approx(30 * load_coefficients().memories["hbm2"]["activate"].value)
    assert synthetic().energy.source_picojoules["memory_activate"] > counted


def test_longer_and_busier_runs_take_more():
    short, long = synthetic(), synthetic(**arguments(stall_cycles=9_000))
    assert long.energy.energy_total_picojoules > short.energy.energy_total_picojoules
    assert long.energy.source_picojoules["macs"] == short.energy.source_picojoules["macs"]


def test_a_report_without_an_activity_has_no_energy(tmp_path):
    report = synthetic(activity=None)
    assert report.energy is None
    save(report, tmp_path / "report.json")
    body = json.loads((tmp_path / "report.json").read_text())
    del body["energy"]  # as those of versions before
    (tmp_path / "report.json").write_text(json.dumps(body))
    assert load(tmp_path / "report.json") == report


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        ("energy_total_picojoules", "the sum over sources"),
        ("energy_high_picojoules", "the ends of its range"),
        ("average_watts", "picojoules over kernel_microseconds"),
        ("average_low_watts", "picojoules over kernel_microseconds"),
    ],
)
def test_refuses_energy_that_was_edited(tmp_path, field, complaint):
    body = saved(tmp_path)
    body["energy"][field] /= 3
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(body))
    with pytest.raises(InputError, match=complaint):
        load(path)
