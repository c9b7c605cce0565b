"""The arguments and counters of the attention kernel."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.lib.arguments import Argument, ArgumentTable, Kind
from hw.lib.counters import counter_names

#: Why a cycle took no key, in order of precedence.
CAUSES = ("query", "key", "value", "output")
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles in which a key entered the array",
    "cycles_stall_query": "Cycles without a key because the next queries were not loaded",
    "cycles_stall_key": "Cycles in which no key had come",
    "cycles_stall_value": "Cycles without a key because values lagged behind",
    "cycles_stall_output": "Cycles without a key because results could not leave",
    "cycles_idle": "Cycles in which there was nothing left to start",
}


def bytes_counters(config: AttentionConfig) -> dict[str, str]:
    """Give the names and documentation of the counters of bytes; `hw.attention.movers.Moved` has the same."""
    p = config.ports_per_stream
    return {
        "gmem0_read_bytes": "Bytes of queries read",
        **{f"gmem{1 + n}_read_bytes": f"Bytes of key slice {n} read" for n in range(p)},
        **{f"gmem{1 + p + n}_read_bytes": f"Bytes of value slice {n} read" for n in range(p)},
        "gmem0_write_bytes": "Bytes of results written",
    }


def argument_table(config: AttentionConfig) -> ArgumentTable:
    """Give the table: scalars, then pointers, then counters."""
    slices = range(config.ports_per_stream)
    first_v = 1 + config.ports_per_stream

    def scalar(name: str, doc: str) -> Argument:
        return Argument(name=name, kind=Kind.SCALAR, doc=doc)

    def pointer(name: str, port: int, doc: str) -> Argument:
        return Argument(name=name, kind=Kind.POINTER, doc=doc, port=f"gmem{port}")

    return ArgumentTable(
        (
            scalar("queries", "Queries of a head"),
            scalar("keys", "Keys of a head, 1 to 65536"),
            scalar("heads", "Query heads"),
            scalar("kv_group", "Query heads that share keys and values"),
            scalar("score_multiplier", "Raw score to log2 units: multiplier, 1 to 131071"),
            scalar("score_shift", "Raw score to log2 units: right shift, 1 to 47"),
            scalar("output_fraction", "Fraction bits of the results, 0 to 15"),
            pointer("q", 0, "Queries, int8 [heads, queries, D]"),
            *(pointer(f"k{p}", 1 + p, f"Slice {p} of keys, int8 [kv heads, keys, D/P]") for p in slices),
            *(
                pointer(f"v{p}", first_v + p, f"Slice {p} of values, int8 [kv heads, keys, D/P]")
                for p in slices
            ),
            pointer("o", 0, "Results, int16 [heads, queries, D]"),
            *(
                Argument(name=name, kind=Kind.COUNTER, doc=_CYCLE_DOCS[name])
                for name in counter_names(CAUSES)
            ),
            *(
                Argument(name=name, kind=Kind.COUNTER, doc=doc)
                for name, doc in bytes_counters(config).items()
            ),
        )
    )
