"""The attention engine's simulation side: tensors to a launch, and the launch's bytes to o."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.driver.job import divide_launch
from hw.attention.driver.layout import Layout
from hw.attention.driver.tensors import read_inputs
from hw.attention.driver.workload import AttentionWorkload
from hw.board import Board
from hw.errors import InputError
from hw.launch import Buffers, Launch, Tensor, Tensors
from sim.engines.attention.cases import attention_cases
from sim.engines.attention.drawn import random_tensors
from sim.engines.attention.host_call import attention_call
from sim.engines.attention.job import AttentionJob, distance, make_job
from sim.engines.attention.saturation import saturation
from sim.golden.attention.formats import Arithmetic
from sim.golden.attention.model import attention_job
from sim.run.adapter import Case, EngineAdapter
from sim.run.files import tensor_file
from sim.run.host_call import HostCall
from sim.workloads.layers import Attention, Layer


class AttentionAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is an `AttentionJob`.

    The input tensors are `hw.attention.driver.tensors.NAMES`, described in ``docs/attention.md``.
    """

    name = "attention"
    input_files = (
        tensor_file(
            {
                "q, k, v": "[H, Nq, dqk], [Hkv, Nk, dqk], [Hkv, Nk, dv]; int8, or floating point",
                "q_scale, k_scale, v_scale": "Real value of a step, or one a head; needed for int8.",
                "per_channel": "0 or 1: whether floating point is equalized channel by channel.",
                "softmax_scale": "Factor of the logits, or one a head; 1/sqrt(dqk) without.",
                "causal": "0 or 1: hide keys after a query's position.",
                "window": "Newest keys that a query sees; 0 for all.",
                "bitmap": "bool [query blocks, key tiles], or for each head: the tiles seen.",
                "bitmap_queries, bitmap_keys": "Queries and keys of a bit.",
                "query_lengths, key_lengths": "Tokens of packed sequences.",
                "sequence_lengths": "The same where both are equal.",
                "block_table, page_keys": "Pages of keys and values, [sequences, pages]; keys of a page.",
                "logit_cap, alibi_slopes": "Cap of the logits; a slope a head.",
                "output_fraction": "int16 results: fraction bits, or one a head.",
                "output_scale": "int8 results: real value of a step, or one a head.",
                "pack": "Query heads of a group in one query tile.",
            }
        ),
    )
    examples = ("--config examples/attention.yaml --input examples/in.npz",)
    space: ClassVar = {"rows": [2, 4, 8, 16, 32, 64], "lanes": [32, 64, 128]}

    def job(self, tensors: Tensors, config: AttentionConfig) -> AttentionJob:
        """Check, quantize and divide; see `EngineAdapter.job`."""
        return make_job(read_inputs(tensors, config), config)

    def control_job(self, tensors: Tensors, config: AttentionConfig) -> AttentionJob:
        """Make a job whose results have room for any values; see `EngineAdapter.control_job`."""
        return AttentionJob(**vars(divide_launch(read_inputs(tensors, config), config)))

    def launch(self, job: AttentionJob, config: AttentionConfig, board: Board) -> Launch:
        """See `hw.attention.driver.layout`."""
        return Layout(job, config).launch()

    def host_call(self, job: AttentionJob, config: AttentionConfig, board: Board) -> HostCall:
        """See `sim.engines.attention.host_call`."""
        return attention_call(job, config)

    def golden(self, job: AttentionJob, config: AttentionConfig) -> dict[str, Tensor]:
        """Run `sim.golden.attention.model.attention_job` on every job."""
        return {
            "o": job.assembled(
                attention_job(
                    piece.integers,
                    Arithmetic(
                        tile_keys=config.tile_keys,
                        streams=piece.share.shape.streams(config),
                        probability_bits=config.probability_bits,
                        exp_segments=config.exp_segments,
                    ),
                )
                for piece in job.pieces
            )
        }

    def outputs(self, job: AttentionJob, config: AttentionConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Read ``o`` [H, Nq, dv] from its buffers: int8, int16, or bfloat16 as bits in uint16."""
        return {"o": Layout(job, config).results(buffers)}

    def results(self, job: AttentionJob, config: AttentionConfig, integers: Tensors) -> dict[str, Tensor]:
        """Return ``o`` (float32), ``o_int`` (as in memory), ``o_scale``: a number, one a head, or [H, dv]."""
        size = job.inputs.value_size
        scale = job.output_scale[:, :size]
        if (scale == scale[:, :1]).all():
            scale = scale[:, 0]
        if (scale == scale.flat[0]).all():
            scale = scale.reshape(-1)[:1].reshape(())
        return {
            "o": job.real(integers["o"])[..., :size].astype(np.float32),
            "o_int": integers["o"][..., :size],
            "o_scale": scale,
        }

    def write_results(self, path: Path, results: Tensors, golden: Tensors) -> None:
        """Write both without the padding of rows; see `EngineAdapter.write_results`."""
        size = results["o"].shape[-1]
        super().write_results(path, results, {"o": golden["o"][..., :size]})

    def errors(self, job: AttentionJob, config: AttentionConfig, integers: Tensors) -> dict[str, float]:
        """Compare with float64 attention on the int8 inputs, and on given floats; report saturation."""
        o = job.real(integers["o"])
        measures = saturation(job) | distance(o, job.exact, "int8_inputs")
        exact = job.exact_on_given()
        return measures if exact is None else measures | distance(o, exact, "given_inputs")

    def workload(self, job: AttentionJob, config: AttentionConfig) -> AttentionWorkload:
        """See `AttentionJob.workload`."""
        return job.workload

    def items(self, job: AttentionJob) -> tuple[int, str]:
        """Return the queries of all sequences; each has all heads."""
        return sum(job.workload.queries), "queries"

    def tensors(
        self, workload: AttentionWorkload, config: AttentionConfig, *, seed: int
    ) -> dict[str, Tensor]:
        """See `sim.engines.attention.drawn.random_tensors`."""
        return random_tensors(workload, seed=seed)

    def layer_shape(self, layer: Layer) -> dict[str, Any]:
        """Return attention of one sequence; see `EngineAdapter.layer_shape`."""
        work = layer.work
        if not isinstance(work, Attention):
            kind = getattr(work, "reason", f"a {type(work).__name__.lower()} alone")
            raise InputError("kind", kind, "attention: two products with a softmax between")
        fields = vars(work) | {"queries": (work.queries,), "keys": (work.keys,)}
        AttentionWorkload(**fields)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.attention.cases`."""
        return attention_cases()


ADAPTER = AttentionAdapter()
