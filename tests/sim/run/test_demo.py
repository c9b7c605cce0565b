"""The demo: what it puts through the engine, what it leaves behind, and that a wrong bit fails it."""

import contextlib
import dataclasses
import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import sim.run.demo
import sim.run.part
from hw.board import load_board
from hw.errors import InputError
from hw.network.engine import NetworkEngine
from hw.scheduler.check.check import check
from sim.engines.attention.demo import attention_demo
from sim.engines.conv.demo import CONFIG
from sim.engines.network.nsfw import INPUT
from sim.golden import minilm
from sim.report.pictures import embedded
from sim.report.report import load
from sim.run.demo import demo
from sim.run.part import part_key
from sim.run.result import RunResult
from sim.run.run import find_adapter
from tests.support.attention.capture import capture
from tests.support.pages.reports import synthetic

LAUNCHES = [f"layer {layer}" for layer in range(6)]


@pytest.fixture(scope="module")
def weights() -> None:
    for module in (minilm.PACKAGE, "safetensors", "tokenizers"):
        pytest.importorskip(module)


def stand_in(monkeypatch):
    """Put the golden model in the place of generator and simulator; ``wrong`` launches differ in a bit."""
    made = SimpleNamespace(launches=[], packages=[], ahead=[], wrong=())

    def run(engine, config, board, tensors, *, seed, memory_mode, directory, traces, waves):
        made.launches.append((engine, config, board.name, memory_mode, tensors))
        chosen = find_adapter(engine)
        job = chosen.job(tensors, config)
        integers = chosen.golden(job, config)
        exact = len(made.launches) - 1 not in made.wrong
        report = synthetic(bit_exact=exact, errors=chosen.errors(job, config, integers))
        results = chosen.results(job, config, integers)
        mismatches = () if exact else ("o differs in 1 of 2 elements",)
        return RunResult(
            outputs=results,
            integers=integers,
            golden=integers,
            mismatches=mismatches,
            measured=report,
            traces=traces,
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
    options = {"engines": ["attention"], **options}
    passed = demo("u55c", directory, console=Console(file=text, width=80), **options)
    return passed, text.getvalue()


@pytest.fixture(scope="module")
def shown(weights, tmp_path_factory):
    """Run the whole demo once."""
    directory = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as monkeypatch:
        made = stand_in(monkeypatch)
        passed, text = show(directory)
    return SimpleNamespace(passed=passed, text=text, directory=directory, bench=made)


def test_every_head_of_every_layer_goes_through(shown):
    assert shown.passed
    launches = shown.bench.launches
    assert len(launches) == len(LAUNCHES)
    text = minilm.paragraph()["text"]
    for layer, (*_, tensors) in enumerate(launches):
        captured = capture(text, layer)
        for name in "qkv":
            assert tensors[name].shape == (12, 256, 32)
            # Behind layer 0 each reads what the attention before it gave, not what exact attention would.
            error = np.abs(tensors[name] - captured[name]).max() / np.abs(captured[name]).max()
            assert error < 0.1 if layer else error < 1e-6
            assert (error > 1e-4) == (layer > 0)
    assert {launch[:1] + launch[2:4] for launch in launches} == {("attention", "u55c", "model")}
    config = launches[0][1]
    assert (config.lanes, config.folds) == (32, 1)
    verilog = shown.directory / "attention" / "verilog"
    assert shown.bench.packages == [(("attention", config, "u55c"), verilog)]


def test_it_says_where_everything_is(shown):
    index = shown.directory / "index.html"
    assert str(index) in shown.text
    page = shown.directory / "attention" / "report.html"
    assert str(page) in shown.text
    assert str(shown.directory / "attention" / "verilog") in shown.text
    own, first = page.read_text(), index.read_text()
    links = re.findall(r'href="([^"]*)"', first)
    # The package itself is a stand-in's.
    assert [link for link in links if not (shown.directory / link).exists()] == ["attention/verilog"]
    assert "attention/report.html" in links
    for name in LAUNCHES:
        file = shown.directory / "attention" / f"{name.replace(' ', '-')}.report.json"
        assert name in shown.text
        assert str(file) in shown.text
        assert load(file).label == name
        assert name in own
        assert name in first
        assert f"attention/{file.name}" in links


def test_rounding_hardly_moves_the_sentence(shown):
    line = next(line for line in shown.text.splitlines() if "cosine" in line)
    cosine = float(line.split("cosine ")[1].split()[0])
    assert 0.999 < cosine < 1


def test_a_wrong_bit_fails_it_but_loses_nothing(weights, bench, tmp_path):
    bench.wrong = (1,)
    passed, text = show(tmp_path)
    assert not passed
    assert "NO" in text
    assert "layer 1: o differs in 1 of 2 elements" in text
    assert len(list((tmp_path / "attention").glob("*.report.json"))) == 6
    assert "5 of 6" in (tmp_path / "attention" / "report.html").read_text()
    index = (tmp_path / "index.html").read_text()
    assert "5 of 6" in index
    assert 'class="tile bad"' in index
    assert '<td class="no">NO</td>' in index


def test_finished_reports_are_kept_when_a_later_launch_fails(weights, bench, tmp_path, monkeypatch):
    run = sim.run.demo.run

    def fail_on_the_third(*arguments, **options):
        if len(bench.launches) == 2:
            raise RuntimeError("out of memory")
        return run(*arguments, **options)

    monkeypatch.setattr(sim.run.demo, "run", fail_on_the_third)
    with pytest.raises(RuntimeError, match="out of memory"):
        show(tmp_path)
    assert len(list((tmp_path / "attention").glob("*.report.json"))) == 2


def test_engines_without_a_demo_are_passed_over(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("sim.run.demo.find_adapter", lambda name: SimpleNamespace(demo=lambda board: None))
    with pytest.raises(InputError, match="such that one of them has a demo"):
        show(tmp_path)


def test_refuses_an_unknown_engine_and_board(bench, tmp_path):
    with pytest.raises(InputError, match=r"^engine must be one of"):
        show(tmp_path, engines=["loom"])
    with pytest.raises(InputError, match=r"^board must be one of"):
        demo("u54", tmp_path)


@pytest.mark.parametrize("board", ["u55c", "u280", "u50", "zcu104", "ultra96v2"])
def test_the_shape_follows_the_board(weights, board):
    default = sim.run.demo.find_engine("attention").default_config(load_board(board))
    config = attention_demo(default).config
    assert (config.lanes, config.folds) == (32, 1)
    assert config.rows == default.rows


def test_the_network_shows_a_photograph_its_layers_and_its_plan(bench, tmp_path):
    passed, text = show(tmp_path, engines=["network"])
    assert passed
    [(engine, config, *_, tensors)] = bench.launches
    assert engine == "network"
    assert config == NetworkEngine().default_config(load_board("u55c"))
    assert tensors[INPUT].shape == (1, 224, 224, 3)
    noise = re.search(r"float model's: ([0-9.]+) dB", text)
    assert noise
    assert 20 < float(noise[1]) < 40
    logit = re.search(r"Logit of the RTL \(of the float model\): safe for work (\S+) \((\S+)\)", text)
    assert logit
    assert float(logit[1]) == pytest.approx(float(logit[2]), abs=0.5)
    assert check(json.loads((tmp_path / "network" / "plan.json").read_text())) == []
    index = (tmp_path / "index.html").read_text()
    for name in ("plan", "layers"):
        assert f"network/{name}.html" in re.findall(r'href="([^"]*)"', index)
    assert "Addresses over time" in (tmp_path / "network" / "plan.html").read_text()


def test_a_small_board_has_no_network_to_show():
    assert find_adapter("network").demo(load_board("zcu104")) is not None
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
