"""The demo: what it puts through the engine, what it leaves behind, and that a wrong bit fails it."""

import contextlib
import dataclasses
import io
import json
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

import sim.run.demo
import sim.run.part
from hw.board import load_board
from hw.errors import InputError
from hw.network.engine import NetworkEngine
from hw.scheduler.check.check import check
from sim.engines.conv.demo import CONFIG
from sim.engines.network.minilm import PACKAGE
from sim.engines.network.nsfw import INPUT
from sim.golden import minilm
from sim.report.pictures import embedded
from sim.report.report import load
from sim.run.demo import demo
from sim.run.part import part_key
from sim.run.result import RunResult
from sim.run.run import find_adapter
from tests.support.networks.signal_log import launch_report, write_log
from tests.support.pages.reports import synthetic

LAUNCHES = [f"view {number}" for number in range(6)]


def stand_in(monkeypatch):
    """Put the golden model in the place of generator and simulator; ``wrong`` launches differ in a bit."""
    made = SimpleNamespace(launches=[], packages=[], ahead=[], wrong=())

    def run(engine, config, board, tensors, *, seed, memory_mode, directory, traces, signals, waves):
        made.launches.append((engine, config, board.name, memory_mode, tensors))
        chosen = find_adapter(engine)
        job = chosen.job(tensors, config)
        integers = chosen.golden(job, config)
        exact = len(made.launches) - 1 not in made.wrong
        report = synthetic(bit_exact=exact, errors=chosen.errors(job, config, integers))
        results = chosen.results(job, config, integers)
        mismatches = () if exact else ("o differs in 1 of 2 elements",)
        if signals is not None:
            cycles = write_log(signals, job.program, config, board)
            report = launch_report(job, config, board, cycles, bit_exact=exact)
        return RunResult(
            outputs=results,
            integers=integers,
            golden=integers,
            job=job,
            mismatches=mismatches,
            measured=report,
            traces=traces,
            signals=signals,
            waves=waves,
        )

    @contextlib.contextmanager
    def built_ahead(board):
        yield lambda engine, config: made.ahead.append((engine, config))

    def write_package(design, directory):
        made.packages.append((design, directory))

    monkeypatch.setattr(sim.run.demo, "run", run)
    monkeypatch.setattr(sim.run.demo, "built_ahead", built_ahead)
    monkeypatch.setattr(
        sim.run.demo, "kernel_design", lambda engine, config, board: (engine.name, config, board.name)
    )
    monkeypatch.setattr(sim.run.demo, "write_package", write_package)
    return made


@pytest.fixture
def bench(monkeypatch):
    return stand_in(monkeypatch)


def show(directory, **options):
    text = io.StringIO()
    options = {"engines": ["conv"], **options}
    passed = demo("u55c", directory, console=Console(file=text, width=80), **options)
    return passed, text.getvalue()


def several(monkeypatch):
    """Let the convolution's demo have several launches, each with the results of those before it."""
    found = sim.run.demo.find_adapter("conv").demo(load_board("u55c"))
    given = found.launches["photograph"]
    seen = []

    def launch(name):
        def tensors(results):
            seen.append((name, list(results)))
            return given

        return tensors

    chosen = dataclasses.replace(
        found,
        launches={name: launch(name) for name in LAUNCHES},
        conclude=lambda results: [f"{len(results)} launches"],
        pictures=lambda results: {},
    )
    adapter = find_adapter("conv")
    monkeypatch.setattr(adapter, "demo", lambda board: chosen)
    return seen


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Run a whole demo once."""
    directory = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = stand_in(monkeypatch)
        made.seen = several(monkeypatch)
        passed, text = show(directory)
    return SimpleNamespace(passed=passed, text=text, directory=directory, bench=made)


def test_launches_run_in_order_and_read_those_before(shown):
    assert shown.passed
    launches = shown.bench.launches
    assert len(launches) == len(LAUNCHES)
    assert shown.bench.seen == [(name, LAUNCHES[:n]) for n, name in enumerate(LAUNCHES)]
    assert {launch[:1] + launch[2:4] for launch in launches} == {("conv", "u55c", "model")}
    verilog = shown.directory / "conv" / "verilog"
    assert shown.bench.packages == [(("conv", CONFIG, "u55c"), verilog)]


def test_it_says_where_everything_is(shown):
    index = shown.directory / "index.html"
    assert str(index) in shown.text
    page = shown.directory / "conv" / "report.html"
    assert str(page) in shown.text
    assert str(shown.directory / "conv" / "verilog") in shown.text
    own, first = page.read_text(), index.read_text()
    links = re.findall(r'href="([^"]*)"', first)
    # The package itself is a stand-in's.
    assert [link for link in links if not (shown.directory / link).exists()] == ["conv/verilog"]
    assert "conv/report.html" in links
    for name in LAUNCHES:
        file = shown.directory / "conv" / f"{name.replace(' ', '-')}.report.json"
        assert name in shown.text
        assert str(file) in shown.text
        assert load(file).label == name
        assert name in own
        assert name in first
        assert f"conv/{file.name}" in links


def test_a_wrong_bit_fails_it_but_loses_nothing(bench, tmp_path, monkeypatch):
    several(monkeypatch)
    bench.wrong = (1,)
    passed, text = show(tmp_path)
    assert not passed
    assert "NO" in text
    assert "view 1: o differs in 1 of 2 elements" in text
    assert len(list((tmp_path / "conv").glob("*.report.json"))) == 6
    assert "5 of 6" in (tmp_path / "conv" / "report.html").read_text()
    index = (tmp_path / "index.html").read_text()
    assert "5 of 6" in index
    assert 'class="tile bad"' in index
    assert '<td class="no">NO</td>' in index


def test_finished_reports_are_kept_when_a_later_launch_fails(bench, tmp_path, monkeypatch):
    several(monkeypatch)
    run = sim.run.demo.run

    def fail_on_the_third(*arguments, **options):
        if len(bench.launches) == 2:
            raise RuntimeError("out of memory")
        return run(*arguments, **options)

    monkeypatch.setattr(sim.run.demo, "run", fail_on_the_third)
    with pytest.raises(RuntimeError, match="out of memory"):
        show(tmp_path)
    assert len(list((tmp_path / "conv").glob("*.report.json"))) == 2


def test_engines_without_a_demo_are_passed_over(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("sim.run.demo.find_adapter", lambda name: SimpleNamespace(demo=lambda board: None))
    with pytest.raises(InputError, match="such that one of them has a demo"):
        show(tmp_path)


def test_refuses_an_unknown_engine_and_board(bench, tmp_path):
    with pytest.raises(InputError, match=r"^engine must be one of"):
        show(tmp_path, engines=["loom"])
    with pytest.raises(InputError, match=r"^board must be one of"):
        demo("u54", tmp_path)


def test_the_page_begins_with_the_part_that_says_so(bench, tmp_path, monkeypatch):
    """It is simulated last, and has fewer pictures than the other."""
    one = sim.run.demo.find_adapter("conv").demo(load_board("u55c"))
    other = dataclasses.replace(one, first=True, pictures=lambda results: {})
    monkeypatch.setattr(
        sim.run.demo,
        "find_adapter",
        lambda name: SimpleNamespace(demo=lambda board: other if name == "vadd" else one),
    )
    adapter = find_adapter("conv")
    monkeypatch.setitem(globals(), "find_adapter", lambda name: adapter)
    show(tmp_path, engines=["conv", "vadd"])
    assert [name for name, *_ in bench.launches] == ["conv", "vadd"]
    page = (tmp_path / "index.html").read_text()
    assert re.findall(r'<section class="card" id="(\w+)">', page) == ["vadd", "conv"]
    assert '<a class="pictures first" href="#conv">' in page


def test_attention_alone_is_no_part():
    assert find_adapter("attention").demo(load_board("u55c")) is None


@pytest.mark.soak
def test_the_network_shows_sentences_a_photograph_layers_and_plans(bench, tmp_path):
    for module in (PACKAGE, minilm.PACKAGE, "safetensors", "tokenizers"):
        pytest.importorskip(module)
    passed, text = show(tmp_path, engines=["network"])
    assert passed
    (engine, config, *_, words), (_, same, *_, tensors) = bench.launches
    assert engine == "network"
    # One kernel, and one simulator.
    default = NetworkEngine().default_config(load_board("u55c"))
    assert config == same == dataclasses.replace(default, attention_rows=16)
    assert bench.ahead == [("network", config)]
    assert words["input_ids"].shape == (1, 112)
    assert tensors[INPUT].shape == (1, 224, 224, 3)
    assert "of 28 have the same rank" in text
    noise = re.search(r"float model's: ([0-9.]+) dB", text)
    assert noise
    assert 20 < float(noise[1]) < 40
    logit = re.search(r"Logit of the RTL \(of the float model\): safe for work (\S+) \((\S+)\)", text)
    assert logit
    assert float(logit[1]) == pytest.approx(float(logit[2]), abs=0.5)
    index = (tmp_path / "index.html").read_text()
    links = re.findall(r'href="([^"]*)"', index)
    assert "network/sentences.html" in links
    for launch in ("sentences", "photograph"):
        assert check(json.loads((tmp_path / "network" / f"{launch}-plan.json").read_text())) == []
        assert {f"network/{launch}-{name}.html" for name in ("plan", "layers")} <= {*links}
        assert "Addresses over time" in (tmp_path / "network" / f"{launch}-plan.html").read_text()
    pages = [
        (tmp_path / "network" / f"{each}-layers.html").read_text() for each in ("sentences", "photograph")
    ]
    assert [("Tokens a second" in page, "Images a second" in page) for page in pages] == [
        (True, False),
        (False, True),
    ]
    assert not list(tmp_path.rglob("signals.log"))


def test_a_board_without_room_for_attention_shows_the_photograph_alone():
    board = load_board("zcu104")
    found = find_adapter("network").demo(board)
    assert found.config == NetworkEngine().default_config(board)
    assert [*found.launches] == ["photograph"]
    assert not any(name.startswith("sentences") for name in found.documents)


def test_a_small_board_has_no_network_to_show():
    assert find_adapter("network").demo(load_board("ultra96v2")) is None


def test_pictures_are_on_the_page(bench, tmp_path):
    passed, text = show(tmp_path, engines=["conv"])
    assert passed
    assert "all bytes of the pictures are the golden model's" in text
    [(engine, config, *_, tensors)] = bench.launches
    assert engine == "conv"
    adapter = find_adapter("conv")
    job = adapter.job(tensors, config)
    results = adapter.results(job, config, adapter.golden(job, config))
    chosen = adapter.demo(load_board("u55c"))
    page = (tmp_path / "index.html").read_text()
    launched = RunResult(outputs=results, integers={}, golden={})
    for title, pixels in chosen.pictures({"photograph": launched}).items():
        assert f'<img src="{embedded(pixels)}" alt="{title}">' in page


def test_a_wrong_bit_is_said_of_pictures(bench, tmp_path):
    bench.wrong = (0,)
    passed, text = show(tmp_path, engines=["conv"])
    assert not passed
    assert "NOT all bytes" in text


# What takes minutes is kept.


@pytest.fixture
def kept(bench, monkeypatch):
    """Let the convolution's demo be kept, under a key that can be changed."""
    key = SimpleNamespace(now="one")
    found = sim.run.demo.find_adapter("conv").demo(load_board("u55c"))
    traced = SimpleNamespace(demo=lambda board: dataclasses.replace(found, kept=True))
    monkeypatch.setattr(sim.run.demo, "find_adapter", lambda name: traced)
    monkeypatch.setattr(sim.run.demo, "part_key", lambda engine, config, board: key.now)
    monkeypatch.setattr(
        sim.run.demo, "write_package", lambda design, directory: directory.mkdir(parents=True, exist_ok=True)
    )
    bench.key = key
    return bench


def test_what_is_kept_is_shown_again_and_said_to_be(kept, tmp_path):
    passed, first = show(tmp_path, engines=["conv"])
    assert passed
    assert "Not simulated again" not in first
    pictures = re.findall(r'<img src="([^"]*)"', (tmp_path / "index.html").read_text())
    passed, again = show(tmp_path, engines=["conv"])
    assert passed
    assert len(kept.launches) == 1
    assert kept.ahead == [("conv", CONFIG)]
    assert "Not simulated again: nothing it follows from has changed" in again
    assert str(tmp_path / "conv" / "kept.json") in "".join(again.split())
    assert [line for line in first.splitlines() if "Photograph" in line] == [
        line for line in again.splitlines() if "Photograph" in line
    ]
    page = (tmp_path / "index.html").read_text()
    assert "Not simulated again" in page
    assert re.findall(r'<img src="([^"]*)"', page) == pictures


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", ["key", "file", "kept", "damaged"])
def test_it_is_simulated_again_when_anything_changes(change, kept, tmp_path):
    show(tmp_path, engines=["conv"])
    file = tmp_path / "conv" / "kept.json"
    if change == "key":
        kept.key.now = "two"
    elif change == "file":
        (tmp_path / "conv" / "report.html").unlink()
    elif change == "kept":
        file.unlink()
    else:
        file.write_text(file.read_text()[:-9])
    _, again = show(tmp_path, engines=["conv"])
    assert len(kept.launches) == 2
    assert "Not simulated again" not in again


def test_what_was_wrong_is_not_kept(kept, tmp_path):
    kept.wrong = (0,)
    show(tmp_path, engines=["conv"])
    assert not (tmp_path / "conv" / "kept.json").exists()


def test_the_key_follows_from_sources_configuration_board_and_packages(monkeypatch):
    u55c, u50 = load_board("u55c"), load_board("u50")
    keys = [part_key("conv", CONFIG, u55c), part_key("conv", CONFIG, u50)]
    keys.append(part_key("conv", dataclasses.replace(CONFIG, bank_words=2 * CONFIG.bank_words), u55c))
    assert part_key("conv", CONFIG, u55c) == keys[0]
    monkeypatch.setattr(sim.run.part, "source_digest", lambda *packages: "other sources")
    keys.append(part_key("conv", CONFIG, u55c))
    monkeypatch.setattr(sim.run.part, "distributions", lambda: [SimpleNamespace(name="numpy", version="9")])
    keys.append(part_key("conv", CONFIG, u55c))
    assert len(set(keys)) == 5
