"""The convolution engine's simulation side: layers to a launch, and its golden results."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.driver.network import build
from hw.conv.driver.table import NETWORK, Row, read_table
from hw.conv.driver.workload import ConvWorkload
from hw.errors import InputError
from hw.launch import Buffer, Buffers, Launch, Tensor, Tensors
from sim.engines.conv.cases import as_network, regression
from sim.engines.conv.demo import conv_demo
from sim.engines.conv.drawn import as_tensor, drawn_program, layer_shape
from sim.engines.conv.execute import execute
from sim.engines.conv.host_call import conv_call
from sim.engines.conv.job import LayerJob, NetworkJob, control_layer_job, layer_job
from sim.run.adapter import UNWRITTEN, Case, Demo, EngineAdapter
from sim.run.files import InputFile, tensor_file
from sim.run.host_call import HostCall
from sim.workloads.layers import Layer

#: Name of the array with the seed of a network's weights, offsets and first map.
SEED = "seed"
#: Name of a workload among the tensors of a job: an array of no dimension that holds it.
WORKLOAD = "(workload)"

Job = LayerJob | NetworkJob


class ConvAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is a layer of tensors, a table of layers, `NETWORK`, or
    jobs with drawn tensors, `WORKLOAD`.
    """

    name = "conv"
    input_files = (
        tensor_file(
            {
                "x": "[C, H, W]: the map; int8, or floating point",
                "w": "[Cout, C / group, kH, kW]; int8, or floating point",
                "offset": "[2 offset_group kH kW, oH, oW], or [oH, oW]: pixels, or int16 in 2^-F",
                "mask": "[offset_group kH kW, oH, oW]: 0 to 1, or uint8 in 1/256",
                "bias": "[Cout]: real, or whole numbers in units of w (x - x_zero)",
                "group, offset_group": "As ONNX has them.",
                "pads, strides, dilations": "As ONNX has them; one number stands for all.",
                "bound": "Whole pixels that clamp offsets.",
                "x_scale, x_zero, w_scale": "Real values of steps, and zero point, of int8.",
                "y_scale, y_zero": "Those of the result; they follow from the sums without.",
                "accumulators": "0 leaves out the sums, acc, and their time.",
            }
        ),
        InputFile(
            option="network",
            suffix=".csv",
            help="Table of a network's layers, .csv (conv).",
            read=lambda path, config, seed: {NETWORK: as_network(read_table(path))},
            content={
                "name": "Used once.",
                "kind": "conv, pw (pointwise), dw (depthwise) or ddw (deformable depthwise)",
                "H, W": "Rows and columns of the map; W may be left out.",
                "Cin, Cout, g": "Channels of map and result, groups.",
                "K, s, d": "Kernel, stride, dilation: a number, or 3x1; d may be left out.",
                "p": "Pads: a number, 1x0, or above x left x below x right; may be left out.",
                "OH, OW": "Rows and columns of the result, checked; OW may be left out.",
                "macs, wts, bytes_in, bytes_out": "Checked where they are given.",
            },
        ),
    )
    examples = (
        "--config examples/conv.yaml --input examples/layer.npz",
        "--config examples/conv.yaml --network examples/layers.csv",
    )
    space: ClassVar = {"lanes": [16, 32, 64], "inputs": [16, 32, 64], "outputs": [16, 32, 64]}

    def job(self, tensors: Tensors, config: ConvConfig) -> Job:
        """See `read_tensors`; a network has no other tensor than a ``seed``, 0 if left out."""
        return self._drawn(tensors, config) or layer_job(tensors, config)

    def control_job(self, tensors: Tensors, config: ConvConfig) -> Job:
        """Make a job without the golden sums; see `EngineAdapter.control_job`."""
        return self._drawn(tensors, config) or control_layer_job(tensors, config)

    def tensors(self, workload: ConvWorkload, config: ConvConfig, *, seed: int) -> dict[str, Tensor]:
        """Return the workload and the seed of its tensors; see `drawn_program`."""
        return {WORKLOAD: as_tensor(workload), SEED: np.array(seed)}

    def layer_shape(self, layer: Layer) -> dict[str, Any]:
        """See `sim.engines.conv.drawn.layer_shape`."""
        return layer_shape(layer)

    def _drawn(self, tensors: Tensors, config: ConvConfig) -> NetworkJob | None:
        """Return the job of a network or a workload; None where there is neither."""
        if WORKLOAD in tensors:
            drawn = drawn_program(tensors[WORKLOAD].item(), config, seed=int(tensors[SEED]))
            return NetworkJob(program=drawn)
        if NETWORK not in tensors:
            return None
        for name in tensors:
            if name not in (NETWORK, SEED):
                raise InputError("tensor name", name, f"{SEED}: a network has no other tensors", known=[SEED])
        seed = np.asarray(tensors.get(SEED, 0))
        if seed.size != 1 or seed.dtype.kind not in "iu" or seed.reshape(-1)[0] < 0:
            raise InputError(SEED, seed.tolist(), "a whole number of at least 0")
        rows: list[Row] = tensors[NETWORK].item()
        return NetworkJob(program=build(rows, config, seed=int(seed.reshape(-1)[0])))

    def launch(self, job: Job, config: ConvConfig, board: Board) -> Launch:
        """Maps of every port, written and read; weights, offsets, descriptors; the log."""
        program = job.program.at(config.port_width(board.memory.port_data_width))
        count = len(program.steps)
        maps = (
            Buffer(argument=f"maps{port}", data=content, size_bytes=content.size, output=True)
            for port, content in enumerate(program.arenas())
        )
        given = {"weights": program.weights, "offsets": program.offsets, "jobs": program.descriptors}
        return Launch(
            scalars={"job_count": count},
            buffers=(
                *maps,
                *(Buffer(argument=name, data=data, size_bytes=data.size) for name, data in given.items()),
                Buffer(argument="log", data=None, size_bytes=8 * count, output=True),
            ),
        )

    def host_call(self, job: Job, config: ConvConfig, board: Board) -> HostCall:
        """See `sim.engines.conv.host_call`."""
        return conv_call(job, config, board)

    def golden(self, job: Job, config: ConvConfig) -> dict[str, Tensor]:
        """Run `sim.golden.conv`; the memory that no step writes is compared, too."""
        program = job.program
        return {**job.integers(execute(program)), UNWRITTEN: program.unwritten(program.arenas())}

    def outputs(self, job: Job, config: ConvConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Read the maps that were written, and the memory outside them."""
        maps = self.stored(job, config, buffers)
        unwritten = maps.pop(UNWRITTEN)
        return {**job.integers(maps), UNWRITTEN: unwritten}

    def stored(self, job: Job, config: ConvConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Read the same with the bytes of sums apart."""
        arenas = [buffers[f"maps{port}"] for port in range(config.ports)]
        maps: dict[str, Tensor] = {
            step.result: job.program.read(step.result, arenas) for step in job.program.steps
        }
        return {**maps, UNWRITTEN: job.program.unwritten(arenas)}

    def stored_golden(self, job: Job, config: ConvConfig, golden: Tensors) -> Tensors:
        """Split the sums into bytes."""
        integers = {name: tensor for name, tensor in golden.items() if name != UNWRITTEN}
        return {**job.maps(integers), UNWRITTEN: golden[UNWRITTEN]}

    def results(self, job: Job, config: ConvConfig, integers: Tensors) -> dict[str, Tensor]:
        """See `LayerJob.results`."""
        return job.results({name: tensor for name, tensor in integers.items() if name != UNWRITTEN})

    def errors(self, job: Job, config: ConvConfig, integers: Tensors) -> dict[str, float]:
        """See `LayerJob.errors`."""
        return job.errors(integers)

    def job_cycles(self, job: Job, config: ConvConfig, buffers: Buffers) -> dict[str, int]:
        """Read the log: a cycle for each job."""
        ends, names = (0, *buffers["log"].view("<u8").tolist()), self.job_names(job)
        for name, (begin, end) in zip(names, pairwise(ends), strict=True):
            if end <= begin:
                raise InputError(f"end of job {name} in the log", end, f"above {begin}, the one before")
        return {name: end - begin for name, (begin, end) in zip(names, pairwise(ends), strict=True)}

    def job_names(self, job: Job) -> tuple[str, ...]:
        """Return the names of the steps."""
        return tuple(step.name for step in job.program.steps)

    def items(self, job: Job) -> tuple[int, str]:
        """Return a frame: the layer or the table is computed once."""
        return 1, "frames"

    def workload(self, job: Job, config: ConvConfig) -> ConvWorkload:
        """Return the jobs."""
        return job.program.workload

    def label(self, job: Job, config: ConvConfig) -> str:
        """Say how often a layer is computed again for the bytes of its sums."""
        again = job.bytes if isinstance(job, LayerJob) else 0
        return f"a layer, computed {again} more times for the bytes of its sums" if again else ""

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.conv.cases`."""
        yield from regression()

    def demo(self, board: Board) -> Demo:
        """Return a photograph; see `sim.engines.conv.demo`."""
        return conv_demo()


ADAPTER = ConvAdapter()
