"""The user's tensors of an attention launch: names, legal values, quantization."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import MAX_KEYS, AttentionConfig
from hw.attention.driver.division import separate_groups_are_free
from hw.attention.driver.modes import Floats, Modes, Sequence, read_tokens
from hw.attention.driver.quantize import Equalized, clipped_ratio, common_step, equalized, quantized
from hw.attention.driver.workload import AttentionWorkload, size_in_memory
from hw.errors import InputError, check_power_of_two, check_range
from hw.launch import Tensor, Tensors

_FRACTION_BITS = range(16)
_SHOWN = 16  # most values that an error lists
#: All legal names; bitmaps of sequences are ``bitmap_0``, ``bitmap_1``, ... instead of ``bitmap``.
NAMES = (
    *("q", "k", "v", "q_scale", "k_scale", "v_scale", "softmax_scale", "logit_cap", "alibi_slopes"),
    *("causal", "window", "bitmap", "bitmap_queries", "bitmap_keys", "pack"),
    *("sequence_lengths", "query_lengths", "key_lengths", "block_table", "page_keys"),
    *("per_channel", "output_fraction", "output_scale"),
)
_BITMAP = re.compile(r"bitmap_(0|[1-9][0-9]*)")


@dataclass(frozen=True, kw_only=True, eq=False)
class Inputs(Modes):
    """Checked and quantized tensors."""

    #: int8, ``[H, Nq, dqk]``, ``[Hkv, Nk, dqk]``, ``[Hkv, Nk, dv]``, zero padded to sizes in memory; with
    #: pages Nk are the keys of a pool.  Floating-point tokens that no query reads are zero.
    q: NDArray[np.int8]
    k: NDArray[np.int8]
    v: NDArray[np.int8]
    #: Real value of one step, for each head of the tensor.
    q_scale: Floats
    k_scale: Floats
    v_scale: Floats
    #: ``[H, dv in memory]``: additional factors of the results, channel by channel.
    channels: Floats
    #: q, k, v in real units if any of them was floating point, else None.
    real: tuple[Tensor, Tensor, Tensor] | None
    #: Share of elements clamped to int8, among those that some query reads, with given steps.
    clipped_ratio: float
    equal: Equalized | None = None  #: The tensors before quantization, if equalized channel by channel.

    def with_elements(self, q: Tensor, k: Tensor, v: Tensor) -> Inputs:
        """Return the same launch of other int8 elements, in the shapes of the user's tensors."""
        return replace(self, q=_filled(q), k=_filled(k), v=_filled(v))


def read_inputs(tensors: Tensors, config: AttentionConfig) -> Inputs:
    """Check and quantize.

    Raises `InputError` for the first tensor that is missing or unknown, or has a wrong shape, type or value.
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
    modes = Modes(
        heads=heads,
        kv_heads=kv_heads,
        query_size=q.shape[2],
        value_size=v.shape[2],
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
    return _quantized(tensors, {"q": q, "k": k, "v": v}, modes, config)


def _tensor(tensors: Tensors, name: str, config: AttentionConfig) -> Tensor:
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
    check_range(f"tokens of {name}", tokens, 1)
    check_range(f"heads of {name}", heads, 1)
    return tensor


def _for_heads(
    tensors: Tensors,
    name: str,
    heads: int,
    *,
    left_out: str = "",
    legal: str = "",
    each: str = "",
    good: Callable[[float], bool] = lambda value: value > 0,
    kinds: str = "fiu",
) -> Floats | None:
    """Return a number for each head from the user's one or one a head, or None.

    They must be of NumPy's ``kinds``, named in ``legal``, and finite and ``good``, described by ``each`` or
    ``legal``. With ``left_out``, a reason, they must be absent.
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
    """Return a tensor [heads, tokens, size] as in memory, with zeros behind each row."""
    size = tensor.shape[2]
    return np.pad(tensor, ((0, 0), (0, 0), (0, size_in_memory(size) - size)))


def _in_real_units(tensor: Tensor, steps: Tensor | None) -> Tensor:
    """Return a tensor [heads, ...] times its heads' steps; unchanged if in real units."""
    return tensor if steps is None or tensor.dtype.kind == "f" else tensor * steps[:, None, None]


def _quantized(tensors: Tensors, given: dict[str, Tensor], modes: Modes, config: AttentionConfig) -> Inputs:
    """Quantize q, k and v by the tokens that some query reads."""
    scales = {name: _for_heads(tensors, f"{name}_scale", len(tensor)) for name, tensor in given.items()}
    known = [np.ones(len(given[name])) if scale is None else scale for name, scale in scales.items()]
    workload = modes.workload(*known)
    read = read_tokens(modes, workload, config, queries=given["q"].shape[1], keys=given["k"].shape[1])
    for name, tensor in given.items():
        if tensor.dtype.kind == "f":
            given[name] = tensor = np.where(read.of(name)[..., None], tensor, tensor.dtype.type(0))
            if not np.isfinite(tensor).all():
                raise InputError(f"tensor {name}", "NaN or infinity", "finite wherever a query reads it")
    real = None
    if any(tensor.dtype.kind == "f" for tensor in given.values()):
        in_real_units = (_in_real_units(given[name], scales[name]) for name in "qkv")
        q, k, v = map(_filled, in_real_units)
        real = q, k, v
    channels = np.ones((modes.kv_heads, size_in_memory(modes.value_size)))
    equal: Equalized | None = None
    if _per_channel(tensors, given, scales, workload, config):
        equal = equalized(given["q"], given["k"], given["v"], read=read.keys, centre=modes.cap is None)
        given = {"q": equal.q, "k": equal.k, "v": equal.v}
        channels[:, : modes.value_size] = equal.channels
        steps, clipped = dict(zip(given, equal.steps, strict=True)), 0.0
    else:
        for name, scale in scales.items():
            if given[name].dtype == np.int8 and scale is None:
                raise InputError(f"{name}_scale", "missing", f"given beside an int8 {name}")
        steps = {name: common_step(given[name]) if scale is None else scale for name, scale in scales.items()}
        clipped = clipped_ratio(
            (given[name], scale, read.of(name))
            for name, scale in scales.items()
            if scale is not None and given[name].dtype.kind == "f"
        )
    q8, k8, v8 = (
        _filled(given[name] if given[name].dtype == np.int8 else quantized(given[name], steps[name]))
        for name in "qkv"
    )
    return Inputs(
        **{field.name: getattr(modes, field.name) for field in fields(modes)},
        q=q8,
        k=k8,
        v=v8,
        q_scale=steps["q"],
        k_scale=steps["k"],
        v_scale=steps["v"],
        channels=channels.repeat(modes.group, 0),
        real=real,
        clipped_ratio=clipped,
        equal=equal,
    )


def _per_channel(
    tensors: Tensors,
    given: Tensors,
    scales: Mapping[str, Floats | None],
    workload: AttentionWorkload,
    config: AttentionConfig,
) -> bool:
    """Say whether tensors are equalized channel by channel: as requested, or by default.

    The default equalizes real tensors without a given scale if no additional job costs a cycle. It does not
    equalize with ``output_scale`` or bfloat16 results: both fix the units of results in memory.
    """
    why = ""
    for name, tensor in given.items():
        if tensor.dtype == np.int8 or scales[name] is not None:
            why = f"{name} is int8" if tensor.dtype == np.int8 else f"{name}_scale is given"
            break
    if "per_channel" not in tensors:
        own_units = config.output != "bfloat16" and "output_scale" not in tensors
        return not why and own_units and separate_groups_are_free(workload, config)
    chosen = bool(_whole(tensors, "per_channel", 0, 1))
    if chosen and why:
        raise InputError("per_channel", 1, f"0 where {why}")
    return chosen


def _whole(tensors: Tensors, name: str, low: int, high: int) -> int:
    """Return a whole number, ``low`` if it is missing."""
    if name not in tensors:
        return low
    value = np.asarray(tensors[name])
    if value.size != 1 or value.dtype.kind not in "iub" or not low <= int(value.reshape(())) <= high:
        raise InputError(name, _shown(value), f"a whole number from {low} to {high}")
    return int(value.reshape(()))


def _page_keys(tensors: Tensors, keys: int, config: AttentionConfig) -> int:
    """Return the keys of a page of a pool of ``keys``; 0 without a block table."""
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


def _sequences(tensors: Tensors, queries: int, keys: int, page_keys: int) -> tuple[Sequence, ...]:
    """Return the sequences that are packed into the tensors, or whose keys lie in pages."""
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
                field = f"tokens of {name}" + (f" in sequence {n}" if len(ends[0]) > 2 else "")
                raise InputError(field, count, f"from 1 to {MAX_KEYS}")
        found.append(sequence)
    return _in_pages(tensors, found, page_keys, keys // page_keys) if page_keys else tuple(found)


def _in_pages(tensors: Tensors, sequences: list[Sequence], page_keys: int, pool: int) -> tuple[Sequence, ...]:
    """Return sequences whose keys lie in the pages of a table, in a pool of ``pages``."""
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
    """Return the ends of sequences, after a zero, from lengths that must sum to ``tokens`` if given."""
    lengths = np.asarray(given)
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not lengths.size or lengths.min() < 1:
        raise InputError(name, _shown(lengths), "a list of whole numbers of at least 1")
    if tokens is not None and int(lengths.sum()) != tokens:
        raise InputError(f"sum of {name}", int(lengths.sum()), f"{tokens}, the tokens of the tensor")
    return [0, *np.cumsum(lengths).tolist()]


def _bitmaps(tensors: Tensors, sequences: int, heads: int) -> tuple[NDArray[np.bool_] | None, ...]:
    """Return the bitmap of each sequence; its shape is checked once the blocks are known."""
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
