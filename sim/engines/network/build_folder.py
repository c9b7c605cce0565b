"""The build folder: a compiled network as files, for `loomwork sim` and `loomwork launch`.

======================  =============================================================================
file                    holds
======================  =============================================================================
``build.json``          `Record`: configuration, inputs and outputs, digests of the next three files
``model.onnx``          the quantized model, with all of its weights
``plan.json``           the plan
``board.yaml``          the board's file
``program.bin``         the program image
``weights_N.bin``       the packets of weights behind pointer ``weights_N``
======================  =============================================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass as document

from hw.board import Board, load_board
from hw.config import config_dict
from hw.edge import read_json, validate
from hw.errors import InputError
from hw.launch import Bytes
from hw.network.compile.compile import Compiled, lower_plan
from hw.network.config import NetworkConfig
from hw.network.driver.tensors import element_type, model_inputs, model_outputs
from hw.network.driver.weights import weight_buffers
from hw.network.graph.network import ModelTensor, Network
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.program import image as images
from hw.network.program.program import NetworkProgram
from hw.scheduler.plan.documents import plan_to_json, read_plan
from sim.engines.network.programs import image_of, program_for
from sim.engines.network.token_inputs import segments_of
from sim.host.files import fresh_directory

BUILD_FORMAT: Literal["loomwork-build-1"] = "loomwork-build-1"
BUILD, MODEL, PLAN, BOARD, IMAGE = "build.json", "model.onnx", "plan.json", "board.yaml", "program.bin"
#: Files whose digests the record holds; the others are made of them again.
_SOURCES = (MODEL, PLAN, BOARD)
_FIELD = "build folder"
_STRICT = ConfigDict(extra="forbid", strict=True)


@document(frozen=True, kw_only=True, config=_STRICT)
class Operand:
    """An input or output of the model."""

    name: str  #: In the model.
    shape: tuple[int, ...]
    layout: str  #: Its dimensions: ``NCHW``, ``NHWC``, ``NC``; ``CHW`` or ``HWC`` behind the batch.
    dtype: str  #: ``float32``, or ``int8`` or ``uint8`` where the model's users have integers.
    #: ``scale``, ``zero``: ``real = scale * (stored - zero)``, stored as int8.
    scale: float
    zero: int


@document(frozen=True, kw_only=True, config=_STRICT)
class Record:
    """``build.json``."""

    format: Literal["loomwork-build-1"] = BUILD_FORMAT
    name: str
    board: str  #: Its name.
    configuration: NetworkConfig  #: Of the kernel, every key.
    #: ``dimensions``, ``shapes``: of the model's open inputs.
    dimensions: dict[str, int]
    shapes: dict[str, tuple[int, ...]]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    sha256: dict[str, str]  #: Of `_SOURCES`, by the file's name.
    tokens: tuple[int, ...] = ()  #: Lengths of the sentences of a model on tokens.


_RECORDS: TypeAdapter[Record] = TypeAdapter(Record)


@dataclass(frozen=True, kw_only=True, eq=False)
class Build:
    """A network that was compiled for a kernel."""

    name: str
    network: Network
    compiled: Compiled
    program: NetworkProgram
    config: NetworkConfig
    board: Board
    image: bytes
    weights: tuple[Bytes, ...]  #: Of each weight port.

    @classmethod
    def of(
        cls,
        compiled: Compiled,
        program: NetworkProgram,
        config: NetworkConfig,
        board: Board,
        *,
        name: str | None = None,
    ) -> Build:
        """Encode a program of a compiled network; ``name``: the network's without it."""
        return cls(
            name=name or compiled.network.name,
            network=compiled.network,
            compiled=compiled,
            program=program,
            config=config,
            board=board,
            image=image_of(program, config),
            weights=tuple(weight_buffers(program, config)),
        )


def write_build(
    directory: Path,
    compiled: Compiled,
    config: NetworkConfig,
    board: Board,
    *,
    model: Path,
    board_file: Path,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Build:
    """Write a build folder, whole or not at all, and return its content.

    ``model``, ``board_file``: the files that network and board were read from.

    Raises `InputError` for a program beyond the kernel's limits, or a directory with other files.
    """
    check_replaceable(directory)
    network = compiled.network
    made = Build.of(compiled, program_for(compiled, config), config, board)
    sources = {
        MODEL: _whole_model(model),
        PLAN: plan_to_json(compiled.plan).encode(),
        BOARD: board_file.read_bytes(),
    }
    record = Record(
        name=network.name,
        board=board.name,
        configuration=config,
        dimensions=dict(dimensions or {}),
        shapes=dict(shapes or {}),
        inputs=tuple(_operand(network, each) for each in model_inputs(network)),
        outputs=tuple(_operand(network, each) for each in model_outputs(network)),
        sha256={name: _digest(content) for name, content in sources.items()},
        tokens=segments_of(network),
    )
    text = json.dumps(
        _RECORDS.dump_python(record, mode="json") | {"configuration": config_dict(config)}, indent=2
    )
    with fresh_directory(_FIELD, directory) as fresh:
        for name, content in (sources | _made(made)).items():
            (fresh / name).write_bytes(content)
        (fresh / BUILD).write_text(f"{text}\n", encoding="utf-8")
    return made


def check_replaceable(directory: Path) -> None:
    """Refuse a directory that holds anything but an earlier build, with `InputError`."""
    if not directory.is_dir():
        return
    names = {path.name for path in directory.iterdir()}
    if names and BUILD not in names:
        raise InputError(_FIELD, str(directory), "new, empty, or a build folder to replace")
    others = {name for name in names if name not in (BUILD, IMAGE, *_SOURCES) and not _is_weights(name)}
    for name in sorted(others):
        raise InputError(_FIELD, str(directory / name), "without files of others, which would be replaced")


def is_build(directory: Path) -> bool:
    """Return whether a directory is a build folder."""
    return (directory / BUILD).is_file()


def read_record(directory: Path) -> Record:
    """Read a build folder's record; raises `InputError` when it is no build folder, or another format's."""
    if not is_build(directory):
        raise InputError(_FIELD, str(directory), f"one that `loomwork compile` wrote, with a {BUILD}")
    path = directory / BUILD
    written = read_json(path)
    stated = written.data.get("format") if isinstance(written.data, dict) else None
    if stated != BUILD_FORMAT:
        raise InputError(f"format of {path}", stated, repr(BUILD_FORMAT))
    return validate(written, _RECORDS)


def read_build(directory: Path) -> Build:
    """Read a build folder, and lower the model by the plan again.

    Raises `InputError` for a missing or changed file, and a program that is not the plan's or the kernel's.
    """
    record = read_record(directory)
    for name in _SOURCES:
        if _digest(_bytes(directory / name)) != record.sha256.get(name):
            raise InputError(str(directory / name), "another file", "the one that the build was made of")
    config = record.configuration
    image = _bytes(directory / IMAGE)
    images.check(image, config)
    model = directory / MODEL
    if record.tokens:
        network = read_tokens(model, record.tokens, name=record.name)
    else:
        network = read_network(model, dimensions=record.dimensions, shapes=record.shapes, name=record.name)
    compiled = lower_plan(network, read_plan(directory / PLAN), columns=config.columns)
    board = replace(load_board(str(directory / BOARD)), name=record.board)
    made = Build.of(compiled, program_for(compiled, config), config, board, name=record.name)
    for name, content in _made(made).items():
        if _bytes(directory / name) != content:
            legal = f"that of {MODEL} and {PLAN}; `loomwork compile` makes it again"
            raise InputError(str(directory / name), "another one", legal)
    return made


def _made(build: Build) -> dict[str, bytes]:
    """Return the files that are made of the others."""
    weights = {f"weights_{number}.bin": data.tobytes() for number, data in enumerate(build.weights)}
    return {IMAGE: build.image} | weights


def _is_weights(name: str) -> bool:
    return name.startswith("weights_") and name.endswith(".bin")


def _operand(network: Network, tensor: ModelTensor) -> Operand:
    value = network.values[tensor.value]
    return Operand(
        name=tensor.name,
        shape=tensor.shape,
        layout=tensor.order,
        dtype=element_type(tensor, value),
        scale=value.scale,
        zero=value.zero,
    )


def _whole_model(path: Path) -> bytes:
    """Return a model's file with the parameters that lie in other files."""
    import onnx
    from onnx.external_data_helper import uses_external_data

    content = path.read_bytes()
    if not any(map(uses_external_data, onnx.load_model_from_string(content).graph.initializer)):
        return content
    model: Any = onnx.load(path)
    if (size := model.ByteSize()) >= 2 << 30:
        raise InputError("bytes of the model with its weights", size, "less than 2^31")
    return bytes(model.SerializeToString())


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(_FIELD, str(path), f"with this file ({error.strerror})") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
