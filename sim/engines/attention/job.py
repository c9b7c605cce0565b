"""An attention launch with float64 attention: reference of its errors, and range of its results."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.driver.job import LaunchJobs, Piece, divide_launch
from hw.attention.driver.tensors import Inputs
from hw.launch import Tensor
from sim.golden.attention.exact import attention_float64

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionJob(LaunchJobs):
    """A launch whose results are compared with float64 attention."""

    #: Float64 attention of each job in steps of its values, if the format of results required it.
    attended: tuple[Floats, ...] = ()

    @cached_property
    def exact(self) -> Floats:
        """Float64 attention on the int8 inputs, in real units: ``[H, Nq, dv]``."""
        whole, inputs = np.zeros(self.shape), self.inputs
        attended = self.attended or (_attended(inputs, piece) for piece in self.pieces)
        for piece, own in zip(self.pieces, attended, strict=True):
            whole[piece.place] = own * piece.value_step * inputs.channels[piece.share.heads, None]
        return whole

    def exact_on_given(self) -> Floats | None:
        """Float64 attention on the user's own floating-point tensors, or None."""
        inputs = self.inputs
        if inputs.real is None:
            return None
        q, k, v = inputs.real
        return self.assembled(
            _exact(inputs, piece, q, k, v, float(inputs.softmax_scale[piece.share.heads.start]))
            for piece in self.pieces
        )


def make_job(inputs: Inputs, config: AttentionConfig) -> AttentionJob:
    """Divide the launch into jobs; without a given format, results get the range of float64 attention.

    Raises `InputError` as `divide_launch` does.
    """

    attended: list[Floats] = []

    def largest(piece: Piece) -> float:
        attended.append(_attended(inputs, piece))
        return float(np.abs(attended[-1]).max())

    jobs = divide_launch(inputs, config, largest)
    return AttentionJob(**vars(jobs), attended=tuple(attended))


def _attended(inputs: Inputs, piece: Piece) -> Floats:
    """Compute float64 attention on the int8 inputs of one job, in steps of its values."""
    return _exact(inputs, piece, inputs.q, inputs.k, inputs.v, piece.factor)


def _exact(inputs: Inputs, piece: Piece, q: Tensor, k: Tensor, v: Tensor, softmax_scale: float) -> Floats:
    """Compute float64 attention of a launch's q, k and v for one job."""
    shared, keys = piece.share.kv_heads, piece.tokens.keys
    slopes = None if inputs.slopes is None else inputs.slopes[piece.share.heads].tolist()
    return attention_float64(
        q[piece.place],
        k[shared, keys],
        v[shared, keys],
        softmax_scale=softmax_scale,
        mask=piece.integers.mask,
        cap=inputs.cap,
        slopes=slopes,
    )


def distance(o: Floats, exact: Floats, inputs: str) -> dict[str, float]:
    """Return the relative RMS error, and the largest error over the largest output."""
    rms = math.sqrt(float((exact**2).mean()))
    largest = float(np.abs(exact).max())
    return {
        f"relative_rms_error_{inputs}": math.sqrt(float(((o - exact) ** 2).mean())) / rms if rms else 0.0,
        f"relative_max_error_{inputs}": float(np.abs(o - exact).max()) / largest if largest else 0.0,
    }
