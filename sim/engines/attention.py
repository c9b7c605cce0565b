"""The attention engine's simulation side: q, k, v to a launch, and the launch's bytes to o."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.cycles import predict_cycles
from hw.board import Board
from hw.errors import InputError
from hw.registry import find_engine
from sim.adapter import Buffer, Case, Demo, EngineAdapter, Launch, Metrics, Tensor
from sim.engines.attention_cases import attention_cases
from sim.engines.attention_demo import attention_demo
from sim.golden.attention import Scaling, attention, attention_float64, scaling

MAX_TOKENS = 65536
_FRACTION_BITS = range(16)


@dataclass(frozen=True, kw_only=True)
class AttentionJob:
    """One attention launch, quantized.

    Members
    -------
    q, k, v
        int8, ``[H, Nq, D]``, ``[Hkv, Nk, D]``, ``[Hkv, Nk, D]``.
    q_scale, k_scale, v_scale
        Real value of one integer step.
    softmax_scale
        Factor of the logits.
    fraction
        Output fraction bits: one output step is ``v_scale * 2^-fraction``.
    scale
        Multiplier and shift of the launch.
    exact
        Float64 softmax attention on the int8 inputs, in units of ``v_scale``: the reference of the errors.
    given
        The user's q, k, v in real units when they were floating point, else None.
    """

    q: NDArray[np.int8]
    k: NDArray[np.int8]
    v: NDArray[np.int8]
    q_scale: float
    k_scale: float
    v_scale: float
    softmax_scale: float
    fraction: int
    scale: Scaling
    exact: NDArray[np.float64]
    given: tuple[Tensor, Tensor, Tensor] | None

    @property
    def output_scale(self) -> float:
        """Real value of one step of the output."""
        return float(self.v_scale * 2.0**-self.fraction)


def _tensor(tensors: Mapping[str, Tensor], name: str, head_dim: int) -> Tensor:
    if name not in tensors:
        raise InputError(f"tensor {name}", "missing", f"given as [heads, tokens, {head_dim}]")
    tensor = tensors[name]
    if tensor.dtype != np.int8 and tensor.dtype.kind != "f":
        raise InputError(f"dtype of {name}", str(tensor.dtype), "int8 or floating point")
    if tensor.ndim != 3:
        raise InputError(f"shape of {name}", tensor.shape, f"[heads, tokens, {head_dim}]")
    heads, tokens, size = tensor.shape
    if size != head_dim:
        raise InputError(f"head size of {name}", size, f"{head_dim}, the head_dim of the configuration")
    if not 1 <= tokens <= MAX_TOKENS:
        raise InputError(f"tokens of {name}", tokens, f"from 1 to {MAX_TOKENS}")
    if heads < 1:
        raise InputError(f"heads of {name}", heads, "at least 1")
    if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
        raise InputError(f"tensor {name}", "NaN or infinity", "finite everywhere")
    return tensor


def _positive(tensors: Mapping[str, Tensor], name: str) -> float:
    value = np.asarray(tensors[name])
    if value.size != 1 or value.dtype.kind not in "fiu":
        raise InputError(name, value.tolist(), "one positive number")
    number = float(value.reshape(()))
    if not (math.isfinite(number) and number > 0):
        raise InputError(name, number, "one positive number")
    return number


def _quantized(tensors: Mapping[str, Tensor], name: str, tensor: Tensor) -> tuple[NDArray[np.int8], float]:
    """Give the tensor in int8 and the value of one step; floating point is quantized per tensor."""
    if tensor.dtype == np.int8:
        if f"{name}_scale" not in tensors:
            raise InputError(f"{name}_scale", "missing", f"given beside an int8 {name}")
        return tensor.astype(np.int8), _positive(tensors, f"{name}_scale")
    if f"{name}_scale" in tensors:
        step = _positive(tensors, f"{name}_scale")
    else:
        step = float(np.abs(tensor).max()) / 127 or 1.0
    return np.clip(np.rint(tensor.astype(np.float64) / step), -128, 127).astype(np.int8), step


def _fraction(given: Tensor) -> int:
    if given.size != 1 or given.dtype.kind not in "iu" or int(given.reshape(())) not in _FRACTION_BITS:
        raise InputError("output_fraction", given.tolist(), "a whole number from 0 to 15")
    return int(given.reshape(()))


def _largest_fraction(largest: float) -> int:
    """Give the most fraction bits with which an output of ``largest`` value steps does not saturate int16."""
    return max(bits for bits in _FRACTION_BITS if bits == 0 or largest * 2**bits <= 2**15 - 2)


class AttentionAdapter(EngineAdapter):
    """See `sim.adapter.EngineAdapter`; a job is an `AttentionJob`.

    The input tensors are ``q`` [H, Nq, D], ``k`` and ``v`` [Hkv, Nk, D], int8 with ``q_scale``, ``k_scale``,
    ``v_scale`` or floating point; ``softmax_scale`` (default 1/sqrt(D)) and ``output_fraction`` (default: as
    many bits as exact attention on these inputs leaves room for) are optional.
    """

    name = "attention"

    def job(self, tensors: Mapping[str, Tensor], config: AttentionConfig) -> AttentionJob:
        """Check and quantize; see `EngineAdapter.job`."""
        known = {"q", "k", "v", "q_scale", "k_scale", "v_scale", "softmax_scale", "output_fraction"}
        for name in tensors:
            if name not in known:
                raise InputError("tensor name", name, "one of " + ", ".join(sorted(known)))
        q, k, v = (_tensor(tensors, name, config.head_dim) for name in ("q", "k", "v"))
        if k.shape != v.shape:
            raise InputError("shape of v", v.shape, f"{k.shape}, the shape of k")
        if q.shape[0] % k.shape[0]:
            raise InputError("heads of q", q.shape[0], f"a multiple of the {k.shape[0]} heads of k")
        (q8, q_scale), (k8, k_scale), (v8, v_scale) = (
            _quantized(tensors, name, tensor) for name, tensor in (("q", q), ("k", k), ("v", v))
        )
        softmax_scale = config.head_dim**-0.5
        if "softmax_scale" in tensors:
            softmax_scale = _positive(tensors, "softmax_scale")
        scale = scaling(softmax_scale=softmax_scale, q_scale=q_scale, k_scale=k_scale)
        exact = attention_float64(q8, k8, v8, softmax_scale=softmax_scale * q_scale * k_scale)
        if "output_fraction" in tensors:
            fraction = _fraction(np.asarray(tensors["output_fraction"]))
        else:
            fraction = _largest_fraction(float(np.abs(exact).max()))
        floating = any(tensor.dtype.kind == "f" for tensor in (q, k, v))
        real = tuple(
            tensor if tensor.dtype.kind == "f" else tensor * step
            for tensor, step in ((q, q_scale), (k, k_scale), (v, v_scale))
        )
        return AttentionJob(
            q=q8,
            k=k8,
            v=v8,
            q_scale=q_scale,
            k_scale=k_scale,
            v_scale=v_scale,
            softmax_scale=softmax_scale,
            fraction=fraction,
            scale=scale,
            exact=exact,
            given=(real[0], real[1], real[2]) if floating else None,
        )

    def launch(self, job: AttentionJob, config: AttentionConfig, board: Board) -> Launch:
        """Lay out q and o whole, k and v in slices of the head dimension, one a memory port."""
        heads, queries, _ = job.q.shape
        kv_heads, keys, _ = job.k.shape
        buffers = [_input("q", job.q)]
        for name, tensor in (("k", job.k), ("v", job.v)):
            slices = tensor.reshape(kv_heads, keys, config.ports_per_stream, -1)
            buffers += [_input(f"{name}{p}", slices[:, :, p]) for p in range(config.ports_per_stream)]
        buffers.append(Buffer(argument="o", data=None, size_bytes=2 * job.q.size, output=True))
        return Launch(
            scalars={
                "queries": queries,
                "keys": keys,
                "heads": heads,
                "kv_group": heads // kv_heads,
                "score_multiplier": job.scale.multiplier,
                "score_shift": job.scale.shift,
                "output_fraction": job.fraction,
            },
            buffers=tuple(buffers),
        )

    def golden(self, job: AttentionJob, config: AttentionConfig) -> dict[str, Tensor]:
        """Run `sim.golden.attention.attention`."""
        return {
            "o": attention(
                job.q, job.k, job.v, scale=job.scale, fraction=job.fraction, tile_keys=config.tile_keys
            )
        }

    def outputs(
        self, job: AttentionJob, config: AttentionConfig, buffers: Mapping[str, NDArray[np.uint8]]
    ) -> dict[str, Tensor]:
        """Read ``o`` [H, Nq, D] int16 from its buffer."""
        return {"o": np.ascontiguousarray(buffers["o"]).view("<i2").reshape(job.q.shape)}

    def results(
        self, job: AttentionJob, config: AttentionConfig, integers: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Give ``o`` (float32), ``o_int`` (int16) and ``o_scale``."""
        return {
            "o": (integers["o"] * job.output_scale).astype(np.float32),
            "o_int": integers["o"],
            "o_scale": np.asarray(job.output_scale),
        }

    def errors(
        self, job: AttentionJob, config: AttentionConfig, integers: Mapping[str, Tensor]
    ) -> dict[str, float]:
        """Compare with float64 attention on the int8 inputs, and on the given ones when they were floats."""
        o = integers["o"] * 2.0**-job.fraction
        measures = _distance(o, job.exact, "int8_inputs")
        if job.given is not None:
            q, k, v = job.given
            exact = attention_float64(q, k, v, softmax_scale=job.softmax_scale)
            measures |= _distance(o * job.v_scale, exact, "given_inputs")
        return measures

    def metrics(self, job: AttentionJob, config: AttentionConfig, board: Board) -> Metrics:
        """Count from the formulas of ``docs/attention.md``."""
        heads, queries, size = job.q.shape
        keys = job.k.shape[1]
        passes = heads * -(-queries // config.rows)
        compulsory = job.q.size + job.k.size + job.v.size + 2 * job.q.size
        macs = 2 * heads * queries * keys * size
        slots = 2 * config.rows * size
        memory = board.memory
        channels = len({*range(1 + 2 * config.ports_per_stream)}) if memory.channels > 1 else 1
        bytes_per_cycle = min(
            (1 + 2 * config.ports_per_stream) * memory.port_data_width / 8,
            memory.realistic_bytes_per_second / memory.channels * channels / (board.clock_mhz * 1e6),
        )
        return Metrics(
            useful_macs=macs,
            mac_slots_per_cycle=slots,
            compulsory_bytes=compulsory,
            predicted_read_bytes=job.q.size + passes * keys * 2 * size,
            predicted_write_bytes=2 * job.q.size,
            predicted_cycles=predict_cycles(config, board, queries=queries, keys=keys, heads=heads),
            memory_bytes_per_cycle=bytes_per_cycle,
            details={"passes_over_keys": passes, "heads": heads, "queries": queries, "keys": keys},
        )

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.attention_cases`."""
        return attention_cases()

    def demo(self, board: Board) -> Demo:
        """See `sim.engines.attention_demo`."""
        return attention_demo(find_engine(self.name).default_config(board))


def _input(argument: str, tensor: Tensor) -> Buffer:
    data = np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)
    return Buffer(argument=argument, data=data, size_bytes=data.size)


def _distance(o: NDArray[np.float64], exact: NDArray[np.float64], inputs: str) -> dict[str, float]:
    """Relative RMS, and largest error over the largest output."""
    rms = math.sqrt(float((exact**2).mean()))
    largest = float(np.abs(exact).max())
    return {
        f"relative_rms_error_{inputs}": math.sqrt(float(((o - exact) ** 2).mean())) / rms if rms else 0.0,
        f"relative_max_error_{inputs}": float(np.abs(o - exact).max()) / largest if largest else 0.0,
    }


ADAPTER = AttentionAdapter()
