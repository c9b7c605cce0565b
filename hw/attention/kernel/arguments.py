"""The arguments and counters of the attention kernel."""

import functools
import itertools

from hw.attention.config import AttentionConfig
from hw.attention.movers.ports import TABLE_PORT, key_port, query_port, result_port, value_port
from hw.attention.walk.descriptor import SCALARS
from hw.lib.arguments import STATUS, Argument, ArgumentTable, counters, pointer, scalar

#: Causes of a cycle without a key, in order of precedence.
CAUSES = ("query", "key", "value", "output")
_SCALAR_DOCS = {
    "queries": "Queries of a head, 1 to 65536",
    "keys": "Keys of a head, 1 to 65536",
    "heads": "Query heads",
    "kv_group": "Query heads that share keys and values",
    "pack": "Query heads of a group in one query tile, 1 to the lesser of kv_group and rows",
    "query_bytes": "Size of a query and key, a multiple of 16",
    "value_bytes": "Size of a value and result in elements, a multiple of 16",
    "flags": "Modes: 1 causal, 2 windowed, 4 sparse, 8 same keys and values as before, 16 paged, 32 decode",
    "window": "Keys that a query sees if windowed, at least 1",
    "score_multiplier": "Raw score to log2 units: multiplier, 1 to 131071",
    "score_shift": "Raw score to log2 units: right shift, 1 to 47",
    "output_multiplier": "int8 and bfloat16 results: multiplier, 65536 to 131071",
    "output_shift": "int8 and bfloat16 results: right shift, 19 to 47 or 126",
    "output_fraction": "int16 results: fraction bits, 0 to 15",
    "cap_multiplier": "Logit cap, 0 for none",
    "page_keys": "Keys of a page if paged, a power of two",
}
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles in which a key entered the array",
    "cycles_stall_query": "Cycles without a key because the next queries were not loaded",
    "cycles_stall_key": "Cycles in which no key had come",
    "cycles_stall_value": "Cycles without a key because values lagged behind",
    "cycles_stall_output": "Cycles without a key because results could not leave",
    "cycles_idle": "Cycles in which there was nothing left to start",
}


def stream_ports(config: AttentionConfig) -> list[tuple[int, int]]:
    """List (stream, port) in the order of the pointers ``k0``, ``k1``, ..."""
    return [(s, p) for s in range(config.streams) for p in range(config.ports)]


def bytes_counters(config: AttentionConfig) -> dict[str, str]:
    """Return names and documentation of the byte counters, as in `hw.attention.movers.ports.PortBytes`."""
    read = {TABLE_PORT: "descriptors, bitmaps, slopes and page tables"}
    read |= {query_port(config, n): f"q{n}" for n in range(config.query_port_count)}
    for n, (s, p) in enumerate(stream_ports(config)):
        read[key_port(config, s, p)] = f"k{n}"
        values = value_port(config, s, p)
        read[values] = f"v{n}" if values not in read else f"v{n}, {read[values]}"
    docs = {f"gmem{port}_read_bytes": f"Bytes of {content} read" for port, content in read.items()}
    for w in range(config.result_ports):
        docs[f"gmem{result_port(config, w)}_write_bytes"] = f"Bytes of o{w} written"
    return docs


def saturation_counters(config: AttentionConfig) -> dict[str, str]:
    """Return names and documentation of the counters of clamped numbers."""
    docs = {"saturated_logits": "Logits of visible pairs, without a cap, that did not fit 24 bits"}
    if config.output != "bfloat16":
        docs["saturated_results"] = f"Results that did not fit {config.output}"
    return docs


@functools.cache
def argument_table(config: AttentionConfig) -> ArgumentTable:
    """Return the table: scalars, then pointers, then counters."""
    ports = stream_ports(config)

    def pointer_at(name: str, port: int, doc: str) -> Argument:
        return pointer(name, f"gmem{port}", doc)

    def slices(side: str, stream: int) -> list[Argument]:
        content, number = ("keys", key_port) if side == "k" else ("values", value_port)
        return [
            pointer_at(
                f"{side}{n}", number(config, s, p), f"Port {p} of stream {s} of {content}, int8, all heads"
            )
            for n, (s, p) in enumerate(ports)
            if s == stream
        ]

    return ArgumentTable(
        (
            *(scalar(name, _SCALAR_DOCS[name]) for name in SCALARS),
            scalar("job_count", "Jobs after the first one"),
            pointer_at("bitmap", TABLE_PORT, "Bits of key tiles, a row of 32-byte words for each query tile"),
            pointer_at("slopes", TABLE_PORT, "int32 [heads], slopes of logits; 0 for none"),
            pointer_at(
                "pages", TABLE_PORT, "Two u32 for each page: where its keys and values lie, by 16 bytes"
            ),
            pointer_at("jobs", TABLE_PORT, "Descriptors of 256 bytes of the jobs after the first one"),
            *(
                pointer_at(f"q{n}", query_port(config, n), f"Port {n} of queries, int8, all heads")
                for n in range(config.query_port_count)
            ),
            *itertools.chain(*(slices(side, s) for s in range(config.streams) for side in "kv")),
            *(
                pointer_at(
                    f"o{w}", result_port(config, w), f"Port {w} of results, {config.output}, all heads"
                )
                for w in range(config.result_ports)
            ),
            *counters(_CYCLE_DOCS | bytes_counters(config) | saturation_counters(config)),
            STATUS,
        )
    )
