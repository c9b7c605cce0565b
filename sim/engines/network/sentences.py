"""Sentences to calibrate and judge transformers by: text for the model's tokenizer, or numbers of tokens."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError, ToolError
from hw.launch import Tensors
from hw.network.graph.transformer.ranges import Ids
from sim.host.paths import check_readable
from sim.run.tensors import load_tensors

#: Distance of two pairs' similarities from which on their order matters.
APART = 0.02
#: Arrays of an archive: numbers of tokens, and which of them are a sentence's.
_IDS, MASK = "input_ids", "attention_mask"
#: Most sentences whose pairs are compared.
_MOST_PAIRED = 64


def read_sentences(path: Path, tokenizer: Path | None, *, longest: int) -> list[Ids]:
    """Return the numbers of tokens of each sentence.

    ``path``: text with a sentence a line, which ``tokenizer`` (tokenizer.json) turns into tokens and cuts.
    Or an .npz archive with an array ``input_ids`` ``[sentences, tokens]``, and an ``attention_mask`` of the
    same shape where lengths differ.

    Raises `InputError` for a file of another form, and `ToolError` without the package ``tokenizers``.
    """
    if path.suffix == ".npz":
        return _from_arrays(path, longest)
    check_readable("sentences", path)
    if tokenizer is None:
        raise InputError("--tokenizer", "left out", f"the model's tokenizer.json: {path} is text")
    try:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise InputError("sentences", str(path), "text in UTF-8, or an .npz archive") from error
    found = [np.array(_encoded(tokenizer, longest).encode(line).ids, np.int64) for line in lines if line]
    if not found:
        raise InputError("sentences", str(path), "a sentence a line, and it is empty")
    return found


def _encoded(path: Path, longest: int) -> Any:
    """Return a tokenizer that cuts sentences and does not fill them up."""
    check_readable("--tokenizer", path)
    if importlib.util.find_spec("tokenizers") is None:
        raise ToolError("sentences as text need `pip install tokenizers`")
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises no other
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError("--tokenizer", str(path), f"a tokenizer.json ({reason})") from error
    found.enable_truncation(longest)
    found.no_padding()
    return found


def _from_arrays(path: Path, longest: int) -> list[Ids]:
    arrays = load_tensors(path)
    if _IDS not in arrays:
        raise InputError("sentences", str(path), f"an archive with integers {_IDS!r}, [sentences, tokens]")
    return sentences_in(arrays, _IDS, longest=longest)


def sentences_in(arrays: Tensors, name: str, *, longest: int) -> list[Ids]:
    """Return the numbers of tokens of each sentence in an array ``[sentences, tokens]``, by its mask.

    Raises `InputError` for arrays of another form.
    """
    ids = np.asarray(arrays[name])
    if ids.ndim != 2 or ids.dtype.kind not in "iu" or not ids.size:
        raise InputError(
            f"sentences in {name!r}", f"{ids.dtype} {ids.shape}", "integers, [sentences, tokens]"
        )
    mask = np.asarray(arrays.get(MASK, np.ones_like(ids))).astype(bool)
    if mask.shape != ids.shape or not mask[:, 0].all() or (mask[:, :-1] < mask[:, 1:]).any():
        raise InputError(MASK, mask.shape, f"of shape {ids.shape}, true from the first token on")
    return [row[: int(seen.sum())][:longest].astype(np.int64) for row, seen in zip(ids, mask, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """How near vectors are to exact ones."""

    mean: float  #: Cosine.
    least: float
    #: Share of pairs of pairs whose similarities keep their order, and of those that are `APART`.
    order: float
    order_apart: float


def likeness(exact: NDArray[Any], found: NDArray[Any]) -> Likeness:
    """Compare vectors, ``[sentences, channels]``.

    >>> likeness(np.eye(3), np.eye(3) * 2).least
    1.0
    """
    one, other = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (exact, found))
    cosines = (one * other).sum(axis=1)
    pairs = np.triu_indices(min(len(one), _MOST_PAIRED), 1)
    wanted, given = ((each @ each.T)[pairs] for each in (one, other))
    every = np.triu_indices(len(wanted), 1)
    gaps, own = ((each[:, np.newaxis] - each)[every] for each in (wanted, given))
    kept, apart = gaps * own > 0, np.abs(gaps) > APART
    return Likeness(
        mean=float(cosines.mean()),
        least=float(cosines.min()),
        order=float(kept.mean()) if kept.size else 1.0,
        order_apart=float(kept[apart].mean()) if apart.any() else 1.0,
    )


def packed(sentences: Sequence[Ids]) -> NDArray[np.int32]:
    """Return the stored input of sentences one behind the other."""
    return np.concatenate(sentences).astype(np.int32).reshape(1, -1, 1)
