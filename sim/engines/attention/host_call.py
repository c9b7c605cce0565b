"""An attention launch as the host library sees it: q, k and v in, o out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.driver.layout import Layout
from hw.attention.driver.tensors import Inputs
from hw.launch import Buffers, Tensor
from sim.engines.attention.job import AttentionJob
from sim.run.host_call import HostCall, HostTensor, RealEntry, host_tensor

#: Real q, k and v are quantized in float64.
_REALS = RealEntry(type="float64", lowest=-128, highest=127)


def attention_call(job: AttentionJob, config: AttentionConfig) -> HostCall:
    """Describe a launch; its modes, scales and tables stay."""
    inputs = job.inputs

    def write(elements: Sequence[Tensor]) -> Buffers:
        other = replace(job, inputs=inputs.with_elements(*elements))
        made = Layout(other, config).launch()
        return {
            buffer.argument: buffer.data
            for buffer in made.buffers
            if buffer.argument[0] in "qkv" and buffer.data is not None
        }

    def read(buffers: Buffers) -> dict[str, Tensor]:
        return {"o": Layout(job, config).results(buffers)[..., : inputs.value_size]}

    return HostCall(inputs=_inputs(inputs), outputs=(_output(job),), write=write, read=read)


def _inputs(inputs: Inputs) -> tuple[HostTensor, ...]:
    """Return q, k and v: int8, or real numbers quantized by the launch's own steps."""
    size = {"q": inputs.query_size, "k": inputs.query_size, "v": inputs.value_size}
    steps = {"q": inputs.q_scale, "k": inputs.k_scale, "v": inputs.v_scale}
    arrays: dict[str, dict[str, Any]] = {name: {"scale": of[:, None, None]} for name, of in steps.items()}
    if (equal := inputs.equal) is not None:
        arrays["q"]["factor"] = equal.ratio.repeat(inputs.group, 0)
        arrays["k"] |= {"divisor": equal.ratio, "centre": equal.centre}
        arrays["v"]["divisor"] = equal.channels[:, None]
    return tuple(
        host_tensor(
            name, (*getattr(inputs, name).shape[:2], size[name]), "int8", reals=_REALS, arrays=arrays[name]
        )
        for name in "qkv"
    )


def _output(job: AttentionJob) -> HostTensor:
    """Return o: as `AttentionAdapter.results` has it."""
    heads, queries, _ = job.shape
    size, kind = job.inputs.value_size, job.pieces[0].integers.output.kind
    return host_tensor(
        "o",
        (heads, queries, size),
        kind,
        output=True,
        reals=RealEntry(type="float32", lowest=np.iinfo(np.int16).min, highest=np.iinfo(np.int16).max),
        arrays={"scale": job.output_scale[:, None, :size]},
    )
