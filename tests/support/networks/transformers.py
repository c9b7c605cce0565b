"""Transformers, built from the sizes in their papers and configurations."""

from __future__ import annotations

import math

from tests.support.networks.builder import Builder


def gpt2_medium(*, tokens: int, past: int = 0, layers: int = 24) -> bytes:
    """GPT-2 medium's decoder layers: 1,024 features, 16 heads (Radford et al., 2019).

    Keys and values of ``past`` tokens lie in the cache; with any, each layer's new ones are outputs.
    """
    net = Builder("gpt2_medium_decode" if past else "gpt2_medium_prefill")
    x = net.input("embedded", 1, tokens, 1024)
    for name in (f"h{layer}" for layer in range(layers)):
        y = _attention(net, net.layer_norm(x, name=f"{name}.ln1"), name, heads=16, tokens=tokens, past=past)
        x = net.add("Add", x, y, name=f"{name}.sum1")
        y = net.dense(net.layer_norm(x, name=f"{name}.ln2"), 4096, name=f"{name}.fc")
        y = net.dense(net.add("Gelu", y, name=f"{name}.gelu", approximate="tanh"), 1024, name=f"{name}.proj")
        x = net.add("Add", x, y, name=f"{name}.sum2")
    net.output(net.layer_norm(x, name="final"))
    return net.model()


def minilm(*, tokens: int = 128, layers: int = 6) -> bytes:
    """Encoder layers of all-MiniLM-L6-v2: 384 features, 12 heads (Wang et al., arXiv 2002.10957)."""
    net = Builder("minilm" if layers > 1 else "minilm_layer")
    x = net.input("embedded", 1, tokens, 384)
    for name in (f"l{layer}" for layer in range(layers)):
        y = _attention(net, x, name, heads=12, tokens=tokens)
        x = net.layer_norm(net.add("Add", x, y, name=f"{name}.sum1"), name=f"{name}.ln1")
        y = net.dense(x, 1536, name=f"{name}.fc")
        y = net.dense(net.add("Gelu", y, name=f"{name}.gelu"), 384, name=f"{name}.proj")
        x = net.layer_norm(net.add("Add", x, y, name=f"{name}.sum2"), name=f"{name}.ln2")
    net.output(x)
    return net.model()


def _attention(net: Builder, x: str, name: str, *, heads: int, tokens: int, past: int = 0) -> str:
    """Attention with all heads: queries, keys, values, scores, softmax, weighted sum, projection."""
    features = net.width[x]
    size, projected = features // heads, {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        flat, length = net.dense(x, features, name=f"{name}.{part}"), tokens
        if past and part != "query":
            cache = net.input(f"past.{name}.{part}", 1, past, features)
            net.output(flat)
            flat = net.add("Concat", cache, flat, name=f"{name}.{part}.all", axis=1)
            length = tokens + past
        split = net.reshape(flat, 1, length, heads, size)
        projected[part] = net.add("Transpose", split, name=f"{name}.{part}.heads", perm=order)
    scores = net.add("MatMul", projected["query"], projected["key"], name=f"{name}.scores")
    scaled = net.add("Mul", scores, net.constant([1 / math.sqrt(size)]), name=f"{name}.scaled")
    weights = net.add("Softmax", scaled, name=f"{name}.softmax", axis=-1)
    mixed = net.add("MatMul", weights, projected["value"], name=f"{name}.mixed")
    joined = net.add("Transpose", mixed, name=f"{name}.joined", perm=[0, 2, 1, 3])
    return net.dense(net.reshape(joined, 1, tokens, features), features, name=f"{name}.out")
