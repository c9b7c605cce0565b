"""The arguments and counters of the network kernel."""

from hw.lib.arguments import STATUS, ArgumentTable, counters, pointer, scalar
from hw.network.config import NetworkConfig

#: Causes of a cycle in which neither unit worked, in order of precedence.
CAUSES = (
    "load",
    "write",
    "read",
    "pixels",
    "weights",
    "room",
    "vector_read",
    "vector_write",
    "drain",
)
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles in which the array took a step, or another unit worked",
    "cycles_stall_load": "Cycles before the first step, loading the opening of the program",
    "cycles_stall_write": "Cycles before a step, waiting for a transfer to memory",
    "cycles_stall_read": "Cycles before a command, waiting for a transfer from memory",
    "cycles_stall_pixels": "Cycles in which the array waited for its pixels",
    "cycles_stall_weights": "Cycles in which the array had its pixels and waited for weights",
    "cycles_stall_room": "Cycles in which the array had both and waited for room for its results",
    "cycles_stall_vector_read": "Cycles in which the vector or the attention unit waited for its words",
    "cycles_stall_vector_write": "Cycles in which either waited for room for its results",
    "cycles_stall_drain": "Cycles after the last command, waiting for transfers",
    "cycles_idle": "Cycles of the sequencer and of units that fill or empty their pipelines",
}


def weight_ports(config: NetworkConfig) -> list[str]:
    """Return the memory port of each pointer ``weights_0``, ``weights_1``, ..."""
    return [f"gmem{1 + n}" for n in range(config.weight_ports)]


def count_docs(config: NetworkConfig) -> dict[str, str]:
    """Return names and documentation of the counters other than those of cycles."""
    return {
        "gmem0_read_bytes": "Bytes read from memory, with the program",
        "gmem0_write_bytes": "Bytes written to memory",
        **{f"{port}_read_bytes": "Bytes of weights read" for port in weight_ports(config)},
        "steps_total": "Commands executed",
    }


def argument_table(config: NetworkConfig) -> ArgumentTable:
    """Return the arguments: pointers, the image's sizes, counters."""
    return ArgumentTable(
        (
            pointer("memory", "gmem0", "The program's region of the memory, at a multiple of 64 bytes"),
            pointer("program", "gmem0", "The program image"),
            scalar("program_records", "Records of the program image"),
            scalar("opening_records", "Those of them that are loaded before the first command"),
            *(
                pointer(
                    f"weights_{n}", port, f"Share {n} of all packets of weights, at a multiple of 64 bytes"
                )
                for n, port in enumerate(weight_ports(config))
            ),
            *counters(_CYCLE_DOCS | count_docs(config)),
            STATUS,
        )
    )
