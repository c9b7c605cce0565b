"""From a user's tensors through a launch on a stand-in to results, for each engine that the library serves.

Folder A is loaded; its call gets the tensors of folder B, which Loomwork wrote. Every byte that the card sees
must be B's, and the results must be those of B's golden model. Attention's come of its gates, simulated.
"""

import numpy as np
import pytest

from hw.board.files import find_board, load_board
from hw.network.config import NetworkConfig
from hw.network.driver.tensors import model_inputs
from hw.network.graph.transformer.writer import written
from loomwork_host import InputError
from sim.run.card import replay, verify, write_launch
from sim.run.launch_folder import read_expected, read_launch, read_manifest
from sim.run.run import Target, find_adapter
from tests.sim.run.test_card import case_of
from tests.support.networks.sentences import small


class Pair:
    """Two launch folders of an engine: B differs from A in the tensors ``drawn``."""

    def __init__(self, engine, directory, tensors, drawn, *, config=None, files=None):
        case = case_of(engine)
        self.directory, self.drawn, self.files = directory, drawn, files or {}
        self.target = Target.of(engine, config or case.config, load_board(case.board))
        for name, given in (("a", tensors), ("b", {**tensors, **drawn})):
            np.savez(directory / f"{name}.npz", **given)
            given_files = {"input": directory / f"{name}.npz", **self.files}
            write_launch(self.target, find_board(case.board), given_files, directory / name, seed=0)
        self.b = directory / "b"
        self.manifest = read_manifest(self.b)

    def run(self, stand, results, given=None):
        """Carry out B's tensors, or those ``given``, on folder A, where the card leaves ``results``.

        Returns real results, integers and the launch.
        """
        stand.module.compute = lambda name, arguments: self.compute(name, arguments, results)
        with stand.open() as opened:
            call = opened.load(self.directory / "a")
            assert set(call.inputs) == set(given or self.drawn)
            launch = call.submit(given or self.drawn)
            return launch.wait(), launch.wait(integers=True), launch

    def compute(self, name, arguments, results):
        """Check each byte that the card sees, and leave results."""
        assert name == self.manifest.kernel
        names = [entry.name for entry in self.manifest.arguments]
        wanted = {buffer.argument: buffer for buffer in read_launch(self.b).buffers}
        for entry, argument in zip(self.manifest.arguments, arguments, strict=True):
            if entry.kind == "scalar":
                assert (entry.name, argument % 2**32) == (entry.name, entry.value)
                continue
            if entry.given:
                expected = wanted[entry.name].data.copy()
                for link in entry.links:
                    word = expected[link.offset : link.offset + 8].view("<u8")
                    word += np.uint64(arguments[names.index(link.argument)].address())
                np.testing.assert_array_equal(np.frombuffer(argument.card, np.uint8), expected, entry.name)
            if entry.name in results:
                argument.card[:] = results[entry.name].tobytes()

    def expected(self):
        """Return results of B's golden model in real units and as integers, as the simulation side does."""
        with np.load(self.b / "golden.npz") as golden:
            adapter, config = self.target.adapter, self.target.config
            files = {"input": self.directory / "b.npz", **self.files}
            tensors = adapter.read_files(files, config, seed=0)
            return adapter.results(self.target.prepare(tensors).job, config, dict(golden))

    def golden_bytes(self):
        """Return output buffers with the bytes that B's golden results determine, among others of chance."""
        rng = np.random.default_rng(9)
        return {
            name: np.where(each.mask != 0, each.content, rng.integers(0, 256, each.mask.size, np.uint8))
            for name, each in read_expected(self.b, self.manifest).items()
        }


@pytest.fixture
def xrt(stand, monkeypatch):
    monkeypatch.setenv("FAKE_REGISTER", "0")
    return stand("xrt")


def test_attention_from_tensors_to_tensors_through_its_gates(xrt, tmp_path):
    """Several jobs, pages, and links between buffers."""
    tensors, rng = dict(case_of("attention").tensors), np.random.default_rng(7)
    tensors |= {name: np.array(0.02) for name in ("q_scale", "k_scale", "v_scale")}
    first, second = (
        {name: rng.integers(-128, 128, tensors[name].shape, np.int8) for name in "qkv"} for _ in range(2)
    )
    pair = Pair("attention", tmp_path, tensors | first, second)
    assert any(entry.links for entry in pair.manifest.pointers)
    replay(pair.b, work=tmp_path / "work", memory_mode="fast")
    assert verify(pair.b).bit_exact
    gates = {
        entry.name: np.fromfile(pair.b / "results" / f"{entry.name}.bin", np.uint8)
        for entry in pair.manifest.pointers
        if entry.output
    }
    found, integers, _ = pair.run(xrt, gates)
    expected = pair.expected()
    assert found["o"].dtype == np.float32
    np.testing.assert_array_equal(found["o"], expected["o"])
    np.testing.assert_array_equal(integers["o"], expected["o_int"])


def heads(rng, scale=0.4):
    return {
        name: rng.normal(0, scale, (count, 20, 16)).astype(np.float32)
        for name, count in (("q", 4), ("k", 2), ("v", 2))
    }


def test_real_tensors_of_attention_beside_scales(xrt, tmp_path):
    rng = np.random.default_rng(1)
    scales = {name: np.array(0.01) for name in ("q_scale", "k_scale", "v_scale")}
    tensors = {**scales, "output_fraction": np.array(4), **heads(rng)}
    pair = Pair("attention", tmp_path, tensors, heads(rng))
    found, _, launch = pair.run(xrt, pair.golden_bytes())
    np.testing.assert_array_equal(found["o"], pair.expected()["o"])
    beyond = np.rint(pair.drawn["q"].astype(np.float64) / 0.01)
    assert launch.clamped["q"] == np.count_nonzero((beyond < -128) | (beyond > 127)) > 0


@pytest.mark.parametrize("per_channel", [0, 1])
def test_real_tensors_of_attention_are_quantized_as_those_of_the_launch(xrt, tmp_path, per_channel):
    """By the launch's own steps, and its channels made equal: its tensors become its bytes."""
    tensors = {"per_channel": np.array(per_channel), **heads(np.random.default_rng(2))}
    tensors["k"] += np.linspace(-3, 3, 16, dtype=np.float32)
    pair = Pair("attention", tmp_path, tensors, {name: tensors[name] for name in "qkv"})
    found, _, launch = pair.run(xrt, pair.golden_bytes())
    np.testing.assert_array_equal(found["o"], pair.expected()["o"])
    assert launch.clamped == {"q": 0, "k": 0, "v": 0}


@pytest.mark.parametrize("reals", [False, True])
def test_a_deformable_layer_from_tensors_to_tensors(xrt, tmp_path, reals):
    """Map, offsets and masks of each launch; results in real units, and sums of five bytes."""
    tensors, rng = dict(case_of("conv").tensors), np.random.default_rng(2)
    del tensors["x_zero"], tensors["bias"]
    tensors |= {"y_scale": np.array(0.5), "y_zero": np.array(-3)}
    x, offset, mask = (tensors[name].shape for name in ("x", "offset", "mask"))
    drawn = {"offset": rng.normal(0, 1.5, offset).astype(np.float32), "mask": rng.random(mask, np.float32)}
    if reals:  # of a real map the steps are the first launch's: the second one has its extremes
        tensors["x"] = rng.normal(0, 0.4, x).astype(np.float32)
        drawn["x"] = np.where(rng.random(x) < 0.9, rng.permuted(tensors["x"]), tensors["x"])
        drawn["x"].flat[:2] = tensors["x"].min(), tensors["x"].max()
    else:
        drawn["x"] = rng.integers(-128, 128, x, np.int8)
        drawn["offset"] = rng.integers(-64, 65, offset, np.int16)
        drawn["mask"] = rng.integers(0, 256, mask, np.uint8)
    pair = Pair("conv", tmp_path, tensors, drawn)
    found, integers, _ = pair.run(xrt, pair.golden_bytes())
    expected = pair.expected()
    assert found["y"].dtype == np.float64
    np.testing.assert_array_equal(found["y"], expected["y_float"])
    np.testing.assert_array_equal(integers["y"], expected["y"])
    np.testing.assert_array_equal(found["acc"], expected["acc"])
    assert expected["acc"].min() < 0 < expected["acc"].max()


def test_a_network_from_an_image_to_its_answers(xrt, tmp_path):
    adapter, config, rng = find_adapter("network"), case_of("network").config, np.random.default_rng(3)
    (image,) = model_inputs(adapter.job({}, config).network)
    first, second = ({image.name: rng.normal(0, 1, image.shape).astype(np.float32)} for _ in range(2))
    pair = Pair("network", tmp_path, first, second)
    found, _, _ = pair.run(xrt, pair.golden_bytes())
    expected = pair.expected()
    assert set(found) == set(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found[name], array)


def test_a_model_on_tokens_from_numbers_to_vectors(xrt, tmp_path):
    """Sentences are given one by one, or one behind the other; Loomwork reads them padded, beside a mask."""
    model, rng = tmp_path / "small.onnx", np.random.default_rng(4)
    model.write_bytes(written(small("mask", "heads")))
    mask = np.array([[1] * 6, [1] * 3 + [0] * 3])
    first, second = (rng.integers(0, 50, mask.shape) * mask for _ in range(2))
    config = NetworkConfig(attention_rows=2, attention_tokens=32, scratchpad_bytes=1 << 18, banks=4)
    tensors = {"input_ids": first, "attention_mask": mask}
    pair = Pair("network", tmp_path, tensors, {"input_ids": second}, config=config, files={"model": model})
    sentences, expected = [second[0], second[1, :3]], pair.expected()
    for given in (sentences, np.concatenate(sentences)):
        found, _, _ = pair.run(xrt, pair.golden_bytes(), {"input_ids": given})
        assert set(found) == set(expected)
        for name, array in expected.items():
            assert array.dtype == np.float32
            np.testing.assert_array_equal(found[name], array)
    for given, message in (
        (sentences[::-1], "lengths of input_ids must be (6, 3), not (3, 6)"),
        (np.full(9, 50), "input_ids must be from 0 to 49, not 50"),
        (np.zeros(9), "type of input_ids must be int64, not 'float64'"),
    ):
        with pytest.raises(InputError) as refused:
            pair.run(xrt, {}, {"input_ids": given})
        assert str(refused.value) == message


@pytest.mark.parametrize("engine", ["oram", "scheduler"])
def test_engines_without_tensors_for_the_library(engine):
    """The map has a client library, the scheduler's engines stand in for arithmetic."""
    case = case_of(engine)
    assert find_adapter(engine).host_call(None, case.config, load_board(case.board)) is None
