"""The arguments and counters of the scheduler kernel."""

from hw.lib.arguments import STATUS, ArgumentTable, counters, pointer, scalar
from hw.scheduler.config import SchedulerConfig

#: Causes of a stall cycle, in order of precedence.
CAUSES = ("load", "write", "read", "ring", "bank", "drain")
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles in which an operator moved a word or computed",
    "cycles_stall_load": "Cycles before the first step, loading the program",
    "cycles_stall_write": "Cycles before a slot, waiting for a transfer to memory",
    "cycles_stall_read": "Cycles before an operator, waiting for a transfer from memory",
    "cycles_stall_ring": "Cycles in which operators waited for the other end of a ring",
    "cycles_stall_bank": "Cycles in which operators waited for a bank of the scratchpad",
    "cycles_stall_drain": "Cycles after the last operator, waiting for transfers to memory",
    "cycles_idle": "Cycles of the sequencer and of operators filling their pipelines",
}
#: Counters other than those of cycles.
COUNTS = {
    "gmem0_read_bytes": "Bytes read from memory",
    "gmem0_write_bytes": "Bytes written to memory",
    "steps_total": "Steps computed",
}
_IMAGE = (
    pointer("program", "gmem0", "The program image, at a multiple of the port's word"),
    scalar("program_records", "Records of the program image"),
)


def argument_table(config: SchedulerConfig) -> ArgumentTable:
    """Return the arguments: pointers, the image's size (neither where the program is frozen), counters."""
    return ArgumentTable(
        (
            pointer(
                "memory", "gmem0", "The program's region of the memory, where every tensor has its address"
            ),
            *(_IMAGE if config.program is None else ()),
            *counters(_CYCLE_DOCS | COUNTS),
            STATUS,
        )
    )
