"""The arguments and counters of the convolution kernel."""

from hw.conv.config import ConvConfig
from hw.conv.movers.movers import PortBytes, side_port, weight_port
from hw.lib.arguments import STATUS, ArgumentTable, counters, pointer, scalar

#: Causes of a cycle in which no unit worked, in order of precedence.
CAUSES = ("weight", "input", "output")
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles in which a word was sampled or a pixel swept",
    "cycles_stall_weight": "Cycles without work because weights had not come",
    "cycles_stall_input": "Cycles without work because pixels or offsets had not come",
    "cycles_stall_output": "Cycles without work because results could not leave",
    "cycles_idle": "Cycles in which there was nothing to start",
}


def bytes_counters(config: ConvConfig) -> dict[str, str]:
    """Return names and documentation of the counters of bytes, those of `hw.conv.movers.movers.PortBytes`."""
    others = {weight_port(config): "weights", side_port(config): "descriptors, offsets and the log"}
    docs = {}
    for name, _ in PortBytes(config):
        port, direction, _ = name.split("_")
        maps = others.get(int(port.removeprefix("gmem")), "maps")
        docs[name] = f"Bytes of {maps} {'read' if direction == 'read' else 'written'}"
    return docs


def argument_table(config: ConvConfig) -> ArgumentTable:
    """Return the table: scalars, then pointers, then counters."""

    weight, side = f"gmem{weight_port(config)}", f"gmem{side_port(config)}"
    return ArgumentTable(
        (
            scalar("job_count", "Jobs"),
            *(pointer(f"maps{p}", f"gmem{p}", f"Slice {p} of all maps, int8") for p in range(config.ports)),
            pointer("weights", weight, "Weights and parameters of all jobs, in order of use"),
            pointer("offsets", side, "Offsets of all jobs, int16, in order of use"),
            pointer("jobs", side, "Descriptors of 1024 bytes"),
            pointer("log", side, "For each job the cycle, from the start, in which it was in memory, uint64"),
            *counters(_CYCLE_DOCS | bytes_counters(config)),
            STATUS,
        )
    )
