"""Random tensors for a launch without tensors, and keys moved into pages."""

import numpy as np

from hw.attention.driver.workload import AttentionWorkload, bitmap_bits
from hw.launch import Tensor, Tensors


def random_tensors(workload: AttentionWorkload, *, seed: int) -> dict[str, Tensor]:
    """Draw tensors of a workload: normal numbers, whose logits have a standard deviation of 1.

    Heads with different settings have different scales of q.
    """
    rng = np.random.default_rng([seed, workload.heads])
    kv_heads = workload.kv_heads or workload.heads
    shapes = {
        "q": (workload.heads, sum(workload.queries), workload.query_size),
        "k": (kv_heads, sum(workload.keys), workload.query_size),
        "v": (kv_heads, sum(workload.keys), workload.value_size),
    }
    tensors: dict[str, Tensor] = {
        name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()
    }
    if len(workload.queries) > 1:
        tensors |= {"query_lengths": np.array(workload.queries), "key_lengths": np.array(workload.keys)}
    if workload.page_keys:
        tensors = into_pages(tensors, workload.page_keys, seed=seed)
    tensors["per_channel"] = np.array(0)
    if workload.settings:
        tensors["q_scale"] = (4 + np.unique(workload.settings, return_inverse=True)[1]) / 127
    for name in ("causal", "window", "pack"):
        if given := getattr(workload, name):
            tensors[name] = np.array(given)
    for number, of_heads in enumerate(workload.bitmaps):
        if of_heads:
            name = "bitmap" if len(workload.queries) == 1 else f"bitmap_{number}"
            tensors[name] = np.stack([bitmap_bits(text) for text in of_heads])
    if any(workload.bitmaps):
        blocks = {"bitmap_queries": workload.bitmap_queries, "bitmap_keys": workload.bitmap_keys}
        tensors |= {name: np.array(given) for name, given in blocks.items()}
    if workload.logit_cap:
        tensors["logit_cap"] = np.array(30.0)
    if workload.alibi:
        tensors["alibi_slopes"] = 2.0 ** -(1 + np.arange(workload.heads) * 8 / workload.heads)
    return tensors


def into_pages(tensors: Tensors, page_keys: int, *, seed: int) -> dict[str, Tensor]:
    """Move keys and values of a launch into pages, in random order, of a pool with unused pages."""
    rng = np.random.default_rng(seed)
    moved = dict(tensors)
    if not {"key_lengths", "sequence_lengths"} & moved.keys():
        moved["query_lengths"], moved["key_lengths"] = (np.array([moved[name].shape[1]]) for name in "qk")
    lengths = moved["key_lengths" if "key_lengths" in moved else "sequence_lengths"]
    counts = -(-lengths // page_keys)
    pool = int(counts.sum()) + 2
    order = rng.permutation(pool)[: pool - 2]
    table = np.full((len(lengths), counts.max()), -1)
    places = []
    for row, keys, end in zip(table, lengths, np.cumsum(counts), strict=True):
        count = -(-keys // page_keys)
        row[:count] = order[end - count : end]
        places.append((row[:count, None] * page_keys + np.arange(page_keys)).reshape(-1)[:keys])
    for name in "kv":
        given = moved[name]
        moved[name] = np.zeros((len(given), pool * page_keys, given.shape[2]), given.dtype)
        moved[name][:, np.concatenate(places)] = given
    return moved | {"block_table": table, "page_keys": np.array(page_keys)}
