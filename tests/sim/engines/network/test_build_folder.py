"""A build folder holds what a network was compiled to; a file that is missing or another one is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from hw.board.files import find_board, load_board
from hw.errors import InputError
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.onnx_reader import read_network
from sim.engines.network.build_folder import is_build, read_build, write_build
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized

CONFIG = NetworkConfig(scratchpad_bytes=1 << 16, banks=4, memory="block")


def model_of(seed=0, channels=40):
    net = Builder("small")
    x = net.conv(net.input("image", 1, 3, 12, 9), channels, name="first", kernel=3, stride=2)
    net.output(
        net.dense(net.add("Flatten", net.add("GlobalAveragePool", x, name="m"), name="f"), 9, name="c")
    )
    return quantized(net.model(), seed=seed)


def build_at(folder, model, *, name="small", config=CONFIG, board="u55c"):
    path = folder / f"{name}.onnx"
    path.write_bytes(model)
    compiled = compile_network(
        read_network(path), scratchpad_bytes=config.scratchpad_bytes, columns=config.columns
    )
    target = folder / "build" / name
    made = write_build(target, compiled, config, load_board(board), model=path, board_file=find_board(board))
    return target, made


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return build_at(tmp_path_factory.mktemp("build"), model_of())


@pytest.fixture
def folder(written, tmp_path):
    """Return a copy that a test may change."""
    return Path(shutil.copytree(written[0], tmp_path / "copy"))


def test_what_is_read_is_what_was_written(written):
    path, made = written
    assert is_build(path)
    found = read_build(path)
    assert (found.name, found.config, found.board) == ("small", made.config, made.board)
    assert found.image == made.image
    assert found.program.steps == made.program.steps
    assert [data.tobytes() for data in found.weights] == [data.tobytes() for data in made.weights]


def test_build_json_describes_inputs_and_outputs(written):
    record = json.loads((written[0] / "build.json").read_text())
    (image,), (classes,) = record["inputs"], record["outputs"]
    assert (image["name"], image["shape"], image["layout"], image["dtype"]) == (
        "image", [1, 3, 12, 9], "NCHW", "float32",
    )  # fmt: skip
    assert (classes["shape"], classes["layout"]) == ([1, 9], "NC")
    assert image["scale"] > 0
    assert record["board"] == "u55c"


def test_a_build_replaces_an_earlier_one_and_nothing_else(written, tmp_path):
    path, _ = written
    target, _ = build_at(tmp_path, model_of())
    build_at(tmp_path, model_of(seed=1))
    assert (target / "weights_0.bin").read_bytes() != (path / "weights_0.bin").read_bytes()
    (target / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"without files of others, .*notes\.txt"):
        build_at(tmp_path, model_of())
    (target / "build.json").unlink()
    with pytest.raises(InputError, match="new, empty, or a build folder to replace"):
        build_at(tmp_path, model_of())


def test_weights_in_files_of_their_own_are_copied(tmp_path):
    model = onnx.load_model_from_string(model_of())
    (tmp_path / "other").mkdir()
    path = tmp_path / "other" / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="data.bin", size_threshold=64)
    network = read_network(path)
    compiled = compile_network(network, scratchpad_bytes=CONFIG.scratchpad_bytes)
    target = tmp_path / "build"
    write_build(target, compiled, CONFIG, load_board("u55c"), model=path, board_file=find_board("u55c"))
    shutil.rmtree(tmp_path / "other")
    read_build(target)


def test_a_folder_that_is_no_build_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match=r"build folder must be one that `loomwork compile` wrote"):
            read_build(path)


@pytest.mark.parametrize("name", ["model.onnx", "plan.json", "board.yaml", "program.bin", "weights_3.bin"])
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"build folder must be with this file .*{name}"):
        read_build(folder)


def changed(path, at=-1):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "at", "message"),
    [
        ("model.onnx", 500, "model.onnx must be the one that the build was made of"),
        ("plan.json", 500, "plan.json must be the one that the build was made of"),
        ("board.yaml", 50, "board.yaml must be the one that the build was made of"),
        ("program.bin", 1, "magic of the program image must be"),
        ("program.bin", 200, "program.bin must be that of model.onnx and plan.json"),
        ("weights_3.bin", 0, "weights_3.bin must be that of model.onnx and plan.json"),
    ],
)
def test_a_changed_file_is_refused(folder, name, at, message):
    changed(folder / name, at)
    with pytest.raises(InputError, match=message):
        read_build(folder)


@pytest.mark.parametrize("size", [-64, -1, 10, 0])
def test_a_truncated_image_is_refused(folder, size):
    image = (folder / "program.bin").read_bytes()
    (folder / "program.bin").write_bytes(image[:size])
    with pytest.raises(InputError, match="of the program image"):
        read_build(folder)


def test_truncated_weights_are_refused(folder):
    weights = (folder / "weights_0.bin").read_bytes()
    (folder / "weights_0.bin").write_bytes(weights[:-32])
    with pytest.raises(InputError, match=r"weights_0\.bin must be that of"):
        read_build(folder)


def test_an_image_for_another_kernel_is_refused(folder, tmp_path):
    other, _ = build_at(tmp_path, model_of(), config=replace(CONFIG, max_steps=512))
    shutil.copy(other / "program.bin", folder / "program.bin")
    with pytest.raises(InputError, match="max_steps of the program image must be 1024, as of the kernel"):
        read_build(folder)


def edited(folder, change):
    path = folder / "build.json"
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def swap(folder, other, *names):
    """Take files of another build, and their digests."""
    digests = json.loads((other / "build.json").read_text())["sha256"]
    for name in names:
        shutil.copy(other / name, folder / name)
    edited(folder, lambda record: record["sha256"].update({name: digests[name] for name in names}))


def test_a_plan_of_another_network_is_refused(folder, tmp_path):
    other, _ = build_at(tmp_path, model_of(channels=24))
    swap(folder, other, "plan.json")
    with pytest.raises(InputError, match="plan must be of the network small"):
        read_build(folder)


def test_other_weights_than_the_programs_are_refused(folder, tmp_path):
    """The plan fits a model of the same shapes; the packets and the image's digest do not."""
    other, _ = build_at(tmp_path, model_of(seed=1))
    swap(folder, other, "model.onnx")
    with pytest.raises(InputError, match=r"must be that of model\.onnx and plan\.json"):
        read_build(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.update(format="other"), "format of .*must be 'loomwork-build-1'"),
        (lambda record: record.pop("configuration"), "configuration must be given"),
        (lambda record: record["configuration"].update(columns=17), "columns must be a power of two"),
        (lambda record: record["configuration"].update(columms=64), "key must be one of"),
        (lambda record: record.update(inputs=3), "inputs must be a list"),
    ],
)
def test_another_record_is_refused(folder, change, message):
    edited(folder, change)
    with pytest.raises(InputError, match=message):
        read_build(folder)


def test_a_program_beyond_the_kernel_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(
        InputError, match="steps of the program at operator 'm' must be at most 1, the max_steps"
    ):
        build_at(tmp_path, model_of(), config=replace(CONFIG, max_steps=1))
    assert not (tmp_path / "build").exists()


def test_the_image_is_a_function_of_model_and_configuration(written, tmp_path):
    target, made = build_at(tmp_path, model_of())
    assert made.image == written[1].image
    for name in ("plan.json", "program.bin"):
        assert (target / name).read_bytes() == (written[0] / name).read_bytes()
    assert np.array_equal(made.weights[0], written[1].weights[0])
