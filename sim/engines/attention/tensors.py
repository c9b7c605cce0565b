"""The user's tensors of an attention launch: what each name means, what is legal, quantization."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import MAX_KEYS, AttentionConfig
from hw.attention.model.workload import size_in_memory
from hw.errors import InputError, check_power_of_two
from sim.engines.attention.quantize import common_step, equalized, quantized
from sim.run.adapter import Tensor

Floats = NDArray[np.float64]

_FRACTION_BITS = range(16)
_SHOWN = 16  # most values that an error lists
#: Every name a user may give; bitmaps of sequences are ``bitmap_0``, ``bitmap_1``, ... instead of ``bitmap``.
NAMES = (
    *("q", "k", "v", "q_scale", "k_scale", "v_scale", "softmax_scale", "logit_cap", "alibi_slopes"),
    *("causal", "window", "bitmap", "bitmap_queries", "bitmap_keys", "pack"),
    *("sequence_lengths", "query_lengths", "key_lengths", "block_table", "page_keys"),
    *("per_channel", "output_fraction", "output_scale"),
)
_BITMAP = re.compile(r"bitmap_(0|[1-9][0-9]*)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequence:
    """Tokens of one sequence: queries ``first <= i < end`` of the packed tensors; keys likewise, or the place
    of each in a pool, in which ``pages`` are the pages that hold them, in order.
    """

    queries: slice
    keys: slice | NDArray[np.int64]
    pages: NDArray[np.int64] | None = None

    @property
    def query_count(self) -> int:
        """How many queries it has."""
        return int(self.queries.stop - self.queries.start)

    @property
    def key_count(self) -> int:
        """How many keys it has."""
        return int(self.keys.stop - self.keys.start) if isinstance(self.keys, slice) else len(self.keys)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs:
    """Checked and quantized."""

    #: int8, ``[H, Nq, dqk]``, ``[Hkv, Nk, dqk]``, ``[Hkv, Nk, dv]``, with zeros behind up to sizes in memory;
    #: with pages Nk are the keys of a pool.
    q: NDArray[np.int8]
    k: NDArray[np.int8]
    v: NDArray[np.int8]
    #: dqk and dv as they were given.
    query_size: int
    value_size: int
    #: Real value of one step, for each head of the tensor.
    q_scale: Floats
    k_scale: Floats
    v_scale: Floats
    #: ``[H, dv in memory]``: what results are to be multiplied by, channel by channel, besides.
    channels: Floats
    #: q, k, v in real units if any of them was floating point, else None.
    real: tuple[Tensor, Tensor, Tensor] | None
    softmax_scale: Floats  #: ``[H]``.
    sequences: tuple[Sequence, ...]  #: At least one.
    page_keys: int  #: Keys of a page, 0 for none.
    #: Modes; window 0 for none.
    causal: bool
    window: int
    #: For each sequence bool ``[1 or H, blocks of queries, tiles of keys]``, or None.
    bitmaps: tuple[NDArray[np.bool_] | None, ...]
    #: Queries and keys of a bit; 0 for the engine's own blocks.
    bitmap_queries: int
    bitmap_keys: int
    #: Largest logit; ALiBi slope ``[H]``; or None.
    cap: float | None
    slopes: Floats | None
    #: ``[H]``, or None for the best.
    fraction: NDArray[np.int64] | None
    output_scale: Floats | None
    pack: int  #: Query heads of a group in one query tile, 0 for the best.

    @property
    def heads(self) -> int:
        """Query heads."""
        return len(self.q)

    @property
    def group(self) -> int:
        """Query heads that share keys and values."""
        return len(self.q) // len(self.k)


def read_inputs(tensors: Mapping[str, Tensor], config: AttentionConfig) -> Inputs:
    """Check and quantize.

    Raises `InputError` for the first tensor that is missing, unknown, of a wrong shape or type, or has an
    illegal value.
    """
    for name in tensors:
        if name not in NAMES and not _BITMAP.fullmatch(name):
            raise InputError("tensor name", name, "one of " + ", ".join(sorted(NAMES)))
    q, k, v = (_tensor(tensors, name, config) for name in "qkv")
    if k.shape[2] != q.shape[2]:
        raise InputError("head size of k", k.shape[2], f"{q.shape[2]}, that of q")
    if v.shape[:2] != k.shape[:2]:
        raise InputError("shape of v", v.shape, f"[{k.shape[0]}, {k.shape[1]}, ...], as k")
    heads, kv_heads = q.shape[0], k.shape[0]
    if heads % kv_heads:
        raise InputError("heads of q", heads, f"a multiple of the {kv_heads} heads of k")
    ((q8, q_scale), (k8, k_scale), (v8, v_scale)), channels = _quantized(tensors, q, k, v)
    real = None
    if any(tensor.dtype.kind == "f" for tensor in (q, k, v)):
        real = (
            _filled(_in_real_units(q, q_scale)),
            _filled(_in_real_units(k, k_scale)),
            _filled(_in_real_units(v, v_scale)),
        )
    softmax_scale = _for_heads(tensors, "softmax_scale", heads)
    cap = _for_heads(
        tensors, "logit_cap", 1, left_out="" if config.logit_cap else ": the configuration has no logit_cap"
    )
    slopes = _for_heads(
        tensors,
        "alibi_slopes",
        heads,
        left_out="" if config.alibi else ": the configuration has no alibi",
        legal=f"one number for each of {heads} heads",
        each="at least 0 and finite",
        good=lambda value: value >= 0,
    )
    elsewhere = f" where results are {config.output}"
    fraction = _for_heads(
        tensors,
        "output_fraction",
        heads,
        left_out="" if config.output == "int16" else elsewhere,
        legal="a whole number from 0 to 15",
        good=lambda value: value in _FRACTION_BITS,
        kinds="iu",
    )
    output_scale = _for_heads(
        tensors, "output_scale", heads, left_out="" if config.output == "int8" else elsewhere
    )
    page_keys = _page_keys(tensors, k.shape[1], config)
    sequences = _sequences(tensors, q.shape[1], k.shape[1], page_keys)
    return Inputs(
        q=_filled(q8),
        k=_filled(k8),
        v=_filled(v8),
        query_size=q.shape[2],
        value_size=v.shape[2],
        q_scale=q_scale,
        k_scale=k_scale,
        v_scale=v_scale,
        channels=channels.repeat(heads // kv_heads, 0),
        real=real,
        softmax_scale=np.full(heads, q.shape[2] ** -0.5) if softmax_scale is None else softmax_scale,
        sequences=sequences,
        page_keys=page_keys,
        causal=bool(_whole(tensors, "causal", 0, 1)),
        window=_whole(tensors, "window", 0, MAX_KEYS),
        bitmaps=_bitmaps(tensors, len(sequences), heads),
        bitmap_queries=_whole(tensors, "bitmap_queries", 0, MAX_KEYS),
        bitmap_keys=_whole(tensors, "bitmap_keys", 0, MAX_KEYS),
        cap=None if cap is None else float(cap[0]),
        slopes=slopes,
        fraction=None if fraction is None else fraction.astype(np.int64),
        output_scale=output_scale,
        pack=_whole(tensors, "pack", 0, min(heads // kv_heads, config.rows)),
    )


def _tensor(tensors: Mapping[str, Tensor], name: str, config: AttentionConfig) -> Tensor:
    if name not in tensors:
        raise InputError(f"tensor {name}", "missing", "given as [heads, tokens, size]")
    tensor = tensors[name]
    if tensor.dtype != np.int8 and tensor.dtype.kind != "f":
        raise InputError(f"dtype of {name}", str(tensor.dtype), "int8 or floating point")
    if tensor.ndim != 3:
        raise InputError(f"shape of {name}", tensor.shape, "[heads, tokens, size]")
    heads, tokens, size = tensor.shape
    if not 1 <= size <= config.max_head_dim:
        legal = f"from 1 to {config.max_head_dim}, folds * lanes of the configuration"
        raise InputError(f"head size of {name}", size, legal)
    if tokens < 1:
        raise InputError(f"tokens of {name}", tokens, "at least 1")
    if heads < 1:
        raise InputError(f"heads of {name}", heads, "at least 1")
    if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
        raise InputError(f"tensor {name}", "NaN or infinity", "finite everywhere")
    return tensor


def _for_heads(
    tensors: Mapping[str, Tensor],
    name: str,
    heads: int,
    *,
    left_out: str = "",
    legal: str = "",
    each: str = "",
    good: Callable[[float], bool] = lambda value: value > 0,
    kinds: str = "fiu",
) -> Floats | None:
    """Give a number for each head, one for all or one each as the user gave it, or None.

    They must be of NumPy's ``kinds``, as ``legal`` says, and finite and ``good``, as ``each`` or ``legal``
    says; with ``left_out``, a reason, there must be none.
    """
    if name not in tensors:
        return None
    values = np.asarray(tensors[name])
    if left_out:
        raise InputError(name, values.tolist(), f"left out{left_out}")
    legal = legal or "one positive number" + (f", or one for each of {heads} heads" if heads > 1 else "")
    if values.dtype.kind not in kinds or values.size not in (1, heads):
        raise InputError(name, _shown(values), legal)
    for value in values.reshape(-1).tolist():
        if not (math.isfinite(value) and good(value)):
            raise InputError(name, value, each or legal)
    return np.broadcast_to(values.reshape(-1).astype(np.float64), (heads,))


def _shown(values: Tensor) -> Any:
    return values.tolist() if values.size <= _SHOWN else f"of shape {values.shape}"


def _filled(tensor: Tensor) -> Tensor:
    """Give a tensor [heads, tokens, size] as it lies in memory, with zeros behind each row."""
    size = tensor.shape[2]
    return np.pad(tensor, ((0, 0), (0, 0), (0, size_in_memory(size) - size)))


def _in_real_units(tensor: Tensor, steps: Tensor) -> Tensor:
    """Give a tensor [heads, ...] times its heads' steps; as it is when it was in real units."""
    return tensor if tensor.dtype.kind == "f" else tensor * steps[:, None, None]


def _quantized(
    tensors: Mapping[str, Tensor], q: Tensor, k: Tensor, v: Tensor
) -> tuple[list[tuple[NDArray[np.int8], Floats]], Floats]:
    """Give each tensor in int8 with the real value of one step of each head; and the factors of results."""
    given = {"q": q, "k": k, "v": v}
    scales = {name: _for_heads(tensors, f"{name}_scale", len(tensor)) for name, tensor in given.items()}
    channels = np.ones((len(v), size_in_memory(v.shape[2])))
    if _whole(tensors, "per_channel", 0, 1):
        for name, tensor in given.items():
            if tensor.dtype == np.int8 or scales[name] is not None:
                why = f"{name} is int8" if tensor.dtype == np.int8 else f"{name}_scale is given"
                raise InputError("per_channel", 1, f"0 where {why}")
        equal = equalized(q, k, v, centre="logit_cap" not in tensors)
        given = {"q": equal.q, "k": equal.k, "v": equal.v}
        channels[:, : v.shape[2]] = equal.channels
        scales = dict(zip(given, equal.steps, strict=True))
    found = []
    for name, tensor in given.items():
        scale = scales[name]
        if tensor.dtype != np.int8:
            scale = common_step(tensor) if scale is None else scale
            tensor = quantized(tensor, scale)
        elif scale is None:
            raise InputError(f"{name}_scale", "missing", f"given beside an int8 {name}")
        found.append((tensor, scale))
    return found, channels


def _whole(tensors: Mapping[str, Tensor], name: str, low: int, high: int) -> int:
    """Give a whole number, ``low`` if it is not given."""
    if name not in tensors:
        return low
    value = np.asarray(tensors[name])
    if value.size != 1 or value.dtype.kind not in "iub" or not low <= int(value.reshape(())) <= high:
        raise InputError(name, _shown(value), f"a whole number from {low} to {high}")
    return int(value.reshape(()))


def _page_keys(tensors: Mapping[str, Tensor], keys: int, config: AttentionConfig) -> int:
    """Give the keys of a page of a pool of ``keys``; 0 where there is no block table."""
    given = [name for name in ("block_table", "page_keys") if name in tensors]
    if not given:
        return 0
    if not config.paged:
        raise InputError(given[0], _shown(tensors[given[0]]), "left out: the configuration is not paged")
    if len(given) == 1:
        (missing,) = {"block_table", "page_keys"} - {*given}
        raise InputError(missing, "missing", f"given beside {given[0]}")
    page_keys = _whole(tensors, "page_keys", 1, MAX_KEYS)
    check_power_of_two("page_keys", page_keys, config.tile_span, MAX_KEYS)
    if keys % page_keys:
        raise InputError("tokens of k", keys, f"a multiple of {page_keys}, the keys of a page")
    return page_keys


def _sequences(
    tensors: Mapping[str, Tensor], queries: int, keys: int, page_keys: int
) -> tuple[Sequence, ...]:
    """Give the sequences that are packed into the tensors, or whose keys lie in pages."""
    both = "sequence_lengths"
    given = {name: tensors[name] for name in (both, "query_lengths", "key_lengths") if name in tensors}
    if both in given and len(given) > 1:
        raise InputError(both, "given", "left out beside query_lengths and key_lengths")
    if len(given) == 1 and both not in given:
        missing = "key_lengths" if "query_lengths" in given else "query_lengths"
        raise InputError(missing, "missing", f"given beside {next(iter(given))}")
    if page_keys and not given:
        raise InputError("key_lengths", "missing", "given beside block_table")
    names = (both, both) if both in given else ("query_lengths", "key_lengths")
    ends = [
        _ends(name, given[name], tokens) if given else [0, tokens]
        for name, tokens in zip(names, (queries, None if page_keys else keys), strict=True)
    ]
    if len(ends[0]) != len(ends[1]):
        raise InputError("key_lengths", len(ends[1]) - 1, f"as many as query_lengths: {len(ends[0]) - 1}")
    found = []
    for n in range(len(ends[0]) - 1):
        sequence = Sequence(queries=slice(*ends[0][n : n + 2]), keys=slice(*ends[1][n : n + 2]))
        for name, count in (("q", sequence.query_count), ("k", sequence.key_count)):
            if count > MAX_KEYS:
                what = f"tokens of {name}" + (f" in sequence {n}" if len(ends[0]) > 2 else "")
                raise InputError(what, count, f"from 1 to {MAX_KEYS}")
        found.append(sequence)
    return _in_pages(tensors, found, page_keys, keys // page_keys) if page_keys else tuple(found)


def _in_pages(
    tensors: Mapping[str, Tensor], sequences: list[Sequence], page_keys: int, pool: int
) -> tuple[Sequence, ...]:
    """Give sequences whose keys lie where a table says in a pool of so many pages."""
    table = np.asarray(tensors["block_table"])
    fewest = max(-(-sequence.key_count // page_keys) for sequence in sequences)
    if table.dtype.kind not in "iu":
        raise InputError("dtype of block_table", str(table.dtype), "whole numbers")
    if table.ndim != 2 or len(table) != len(sequences) or table.shape[1] < fewest:
        legal = (
            f"[{len(sequences)}, {fewest}] or wider: a row for each sequence, its pages of {page_keys} keys"
        )
        raise InputError("shape of block_table", table.shape, legal)
    found = []
    for row, sequence in zip(table, sequences, strict=True):
        key = np.arange(sequence.key_count)
        pages = row[: key[-1] // page_keys + 1]
        for page in pages.tolist():
            if not 0 <= page < pool:
                raise InputError("block_table", page, f"a page from 0 to {pool - 1} for every key")
        pages = pages.astype(np.int64)
        places = pages[key // page_keys] * page_keys + key % page_keys
        found.append(Sequence(queries=sequence.queries, keys=places, pages=pages))
    return tuple(found)


def _ends(name: str, given: Tensor, tokens: int | None) -> list[int]:
    """Give where sequences end, after a zero, from their lengths, which add up to ``tokens`` if given."""
    lengths = np.asarray(given)
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not lengths.size or lengths.min() < 1:
        raise InputError(name, _shown(lengths), "a list of whole numbers of at least 1")
    if tokens is not None and int(lengths.sum()) != tokens:
        raise InputError(f"sum of {name}", int(lengths.sum()), f"{tokens}, the tokens of the tensor")
    return [0, *np.cumsum(lengths).tolist()]


def _bitmaps(
    tensors: Mapping[str, Tensor], sequences: int, heads: int
) -> tuple[NDArray[np.bool_] | None, ...]:
    """Give the bitmap of each sequence; its shape is checked when the blocks are known."""
    numbered = {int(found[1]): name for name in tensors if (found := _BITMAP.fullmatch(name))}
    if "bitmap" in tensors:
        if numbered:
            raise InputError("bitmap", "given", f"left out beside {next(iter(numbered.values()))}")
        if sequences > 1:
            raise InputError("bitmap", "given", "bitmap_0, bitmap_1, ... where there are several sequences")
        numbered = {0: "bitmap"}
    if not numbered and ("bitmap_queries" in tensors or "bitmap_keys" in tensors):
        raise InputError("bitmap", "missing", "given beside bitmap_queries and bitmap_keys")
    found_bitmaps: list[NDArray[np.bool_] | None] = [None] * sequences
    for number, name in numbered.items():
        if number >= sequences:
            raise InputError("tensor name", name, f"of a sequence: there are {sequences}")
        given = np.asarray(tensors[name])
        if given.dtype != np.bool_ and (given.dtype.kind not in "iu" or not np.isin(given, (0, 1)).all()):
            raise InputError(f"dtype of {name}", str(given.dtype), "bool, or whole numbers 0 and 1")
        if given.ndim not in (2, 3) or (given.ndim == 3 and len(given) not in (1, heads)):
            legal = f"[query blocks, key tiles], or that for each of {heads} heads"
            raise InputError(f"shape of {name}", given.shape, legal)
        found_bitmaps[number] = given.astype(np.bool_).reshape(-1, *given.shape[-2:])
    return tuple(found_bitmaps)
