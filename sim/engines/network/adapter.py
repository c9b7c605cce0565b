"""The network engine's adapter: a model and its inputs to a launch, and the golden result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.board import Board, load_board
from hw.errors import InputError
from hw.launch import Buffer, Buffers, Launch, Tensor, Tensors
from hw.network.config import NetworkConfig
from hw.network.driver.region import read_outputs, unwritten
from hw.network.driver.tensors import element_type, model_inputs, real_outputs, stored_inputs
from hw.network.driver.weights import weight_buffers
from hw.network.graph.network import Network
from hw.network.graph.refs import FLAT_CHW, FLAT_HWC, NCHW, NHWC
from hw.network.program.image import RECORD_BYTES, opening_records
from hw.network.program.program import NetworkProgram
from sim.engines.network.default import default_network
from sim.engines.network.job import EMPTY, NetworkJob
from sim.engines.network.programs import image_of, program_for
from sim.golden.network import execute
from sim.run.adapter import UNWRITTEN, BuildFolder, Case, Demo, EngineAdapter
from sim.run.files import InputFile, tensor_file
from sim.run.host_call import HostCall

if TYPE_CHECKING:
    from sim.engines.network.build_folder import Build

# What reads ONNX or plans is imported where it is used: without the planner's packages, launches of other
# engines have this engine's options.

#: Name of the array that holds a `hw.network.graph.network.Network` or a
#: `sim.engines.network.token_inputs.TokenModel`, an array of no dimension.
MODEL = "(model)"
#: Name of the array that holds a `sim.engines.network.build_folder.Build`.
BUILD = "(build)"
#: Name of the array that seeds random inputs.
SEED = "seed"


class NetworkAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is a `NetworkJob`.

    The network is the tensor `MODEL`, or by default `default_network`, planned for the configuration; or it
    is compiled already, `BUILD`.

    The other tensors are the model's inputs in its own shapes and types.  Without any they are random, by
    ``seed`` (a whole number, default 0).

    For a model on tokens they are numbers ``[sentences, tokens]``, and an ``attention_mask`` of the same
    shape where lengths differ; the network is made for these lengths.

    The integers compared are the network's outputs, as they are stored, and every byte of the region that no
    transfer writes.  The results are the outputs in the model's own shapes and types.
    """

    name = "network"
    input_files = (
        tensor_file(
            {
                "NAME": "An input of the model, by its name, in its shape and type; random without any.",
                "input_ids, attention_mask": "[sentences, tokens]: of a model on tokens",
                "seed": "Alone: of random inputs; 0 without.",
            }
        ),
        InputFile(
            option="model",
            suffix=".onnx",
            help="Quantized model to run, .onnx (network).",
            read=lambda path, config, seed: _model(path),
        ),
        InputFile(
            option="build",
            suffix="",
            help="Folder of `loomwork compile` (network).",
            read=lambda path, config, seed: _build(path),
            folder=True,
        ),
    )
    examples = ("--model model.onnx --input in.npz",)

    def find_build(self, path: Path) -> BuildFolder | None:
        """Read the record of a build folder; see `EngineAdapter.find_build`."""
        from sim.engines.network.build_folder import BOARD, is_build, read_record

        if not is_build(path):
            return None
        record, board_file = read_record(path), path / BOARD
        return BuildFolder(
            option="build",
            config=record.configuration,
            board=replace(load_board(str(board_file)), name=record.board),
            board_file=board_file,
        )

    def job(self, tensors: Tensors, config: NetworkConfig) -> NetworkJob:
        """Compile the network, or take a compiled one, and store its inputs; see `EngineAdapter.job`."""
        from sim.engines.network.token_inputs import TokenModel, packed_inputs

        given = dict(tensors)
        if MODEL in given and BUILD in given:
            raise InputError("--model", "given", "left out with --build, which has a model")
        build: Build | None = given.pop(BUILD).item() if BUILD in given else None
        if build is not None and build.config != config:
            raise InputError("--build", build.name, "a build for the configuration of this kernel")
        network = given.pop(MODEL).item() if MODEL in given else build.network if build else default_network()
        if isinstance(network, TokenModel):
            network = network.network(given)
        given = packed_inputs(network, given)
        if not given or (list(given) == [SEED] and SEED not in {each.name for each in model_inputs(network)}):
            given = _drawn(network, _seed(given))
        inputs = stored_inputs(network, given)
        if build is not None:
            return NetworkJob(network=network, program=build.program, inputs=inputs)
        return network_job(network, inputs, config)

    def launch(self, job: NetworkJob, config: NetworkConfig, board: Board) -> Launch:
        """The region, read and written, the program image, and the weights of each port."""
        encoded = image_of(job.program, config)
        image = np.frombuffer(encoded, np.uint8)
        given = {"program": image} | {
            f"weights_{n}": data for n, data in enumerate(weight_buffers(job.program, config))
        }
        return Launch(
            scalars={
                "program_records": image.size // RECORD_BYTES,
                "opening_records": opening_records(encoded),
            },
            buffers=(
                Buffer(argument="memory", data=job.region, size_bytes=job.region.size, output=True),
                *(Buffer(argument=name, data=data, size_bytes=data.size) for name, data in given.items()),
            ),
        )

    def host_call(self, job: NetworkJob, config: NetworkConfig, board: Board) -> HostCall | None:
        """See `sim.engines.network.host_call`."""
        from sim.engines.network.host_call import network_call

        return network_call(job, fill=EMPTY)

    def golden(self, job: NetworkJob, config: NetworkConfig) -> dict[str, Tensor]:
        """Run `sim.golden.network.execute`, which knows no program."""
        values = execute(job.network, job.inputs)
        outputs: dict[str, Tensor] = {name: values[name] for name in job.network.outputs}
        return outputs | {UNWRITTEN: job.region[unwritten(job.program)]}

    def outputs(self, job: NetworkJob, config: NetworkConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Read the outputs, and every byte that no transfer writes."""
        region = buffers["memory"]
        return {**read_outputs(job.program, region), UNWRITTEN: region[unwritten(job.program)]}

    def results(self, job: NetworkJob, config: NetworkConfig, integers: Tensors) -> dict[str, Tensor]:
        """See `hw.network.driver.tensors.real_outputs`."""
        return dict(real_outputs(job.network, {name: integers[name] for name in job.network.outputs}))

    def workload(self, job: NetworkJob, config: NetworkConfig) -> NetworkProgram:
        """Return the program; cycles and bytes depend on no tensor's values."""
        return job.program

    def items(self, job: NetworkJob) -> tuple[int, str]:
        """Return the tokens of all sentences; one image of a network on images, else one inference."""
        from sim.engines.network.token_inputs import segments_of

        if segments := segments_of(job.network):
            return sum(segments), "tokens"
        orders = {tensor.order for tensor in model_inputs(job.network)}
        return 1, "images" if orders & {NCHW, NHWC, FLAT_CHW, FLAT_HWC} else "inferences"

    def label(self, job: NetworkJob, config: NetworkConfig) -> str:
        """Return the network's name, and the number of tokens of each sentence."""
        from sim.engines.network.token_inputs import segments_of

        lengths = " + ".join(map(str, segments_of(job.network)))
        return f"{job.network.name}, {lengths} tokens" if lengths else job.network.name

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.network.cases`."""
        from sim.engines.network.cases import network_cases

        return network_cases()

    def demo(self, board: Board) -> Demo | None:
        """See `sim.engines.network.demo.demo`."""
        from sim.engines.network.demo.demo import network_demo

        return network_demo(board, MODEL)


def network_job(
    network: Network,
    inputs: dict[str, Tensor],
    config: NetworkConfig,
    *,
    scratchpad_bytes: int | None = None,
    **options: Any,
) -> NetworkJob:
    """Compile a network for a configuration.

    ``scratchpad_bytes``: that the plan has, all by default. ``options``: further ones of the planner.
    """
    from hw.network.compile.compile import compile_network
    from hw.network.program.demand import check_demand

    check_demand(network, config)
    compiled = compile_network(
        network,
        scratchpad_bytes=scratchpad_bytes or config.scratchpad_bytes,
        columns=config.columns,
        lanes=config.lanes,
        lines=config.matrix.lines,
        **options,
    )
    return NetworkJob(network=network, program=program_for(compiled, config), inputs=inputs)


def _model(path: Path) -> dict[str, Tensor]:
    from hw.network.graph.onnx_reader import read_network
    from hw.network.graph.transformer.reader import takes_tokens
    from sim.engines.network.token_inputs import TokenModel

    model = TokenModel(path=path) if takes_tokens(path) else read_network(path)
    return {MODEL: np.array(model, object)}


def _build(path: Path) -> dict[str, Tensor]:
    from sim.engines.network.build_folder import read_build

    return {BUILD: np.array(read_build(path), object)}


def _drawn(network: Network, seed: int) -> dict[str, Tensor]:
    """Draw inputs whose stored elements are spread over int8."""
    from sim.engines.network.token_inputs import numbers_below

    rng = np.random.default_rng(seed)
    found: dict[str, Tensor] = {}
    for tensor in model_inputs(network):
        value = network.values[tensor.value]
        rows = numbers_below(network, value.name)
        stored = (
            rng.integers(-128, 128, tensor.shape) if rows is None else rng.integers(0, rows, tensor.shape)
        )
        if tensor.real:
            found[tensor.name] = ((stored - value.zero) * value.scale).astype(np.float32)
        else:
            found[tensor.name] = (stored + 128 * value.unsigned).astype(element_type(tensor, value))
    return found


def _seed(tensors: Tensors) -> int:
    value = np.asarray(tensors.get(SEED, 0))
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= int(value.reshape(())) < 2**32:
        raise InputError(SEED, value.tolist(), "one whole number from 0 to 2^32 - 1")
    return int(value.reshape(()))


ADAPTER = NetworkAdapter()
