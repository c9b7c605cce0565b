"""The arguments and counters of the scheduler kernel."""

from hw.lib.arguments import STATUS, Argument, ArgumentKind, ArgumentTable
from hw.lib.counters import counter_names
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
    Argument(
        name="program",
        kind=ArgumentKind.POINTER,
        doc="The program image, at a multiple of the port's word",
        port="gmem0",
    ),
    Argument(name="program_records", kind=ArgumentKind.SCALAR, doc="Records of the program image"),
)


def argument_table(config: SchedulerConfig) -> ArgumentTable:
    """Return the arguments: pointers, the image's size (neither where the program is frozen), counters."""
    return ArgumentTable(
        (
            Argument(
                name="memory",
                kind=ArgumentKind.POINTER,
                doc="The program's region of the memory, where every tensor has its address",
                port="gmem0",
            ),
            *(_IMAGE if config.program is None else ()),
            *(
                Argument(name=name, kind=ArgumentKind.COUNTER, doc=_CYCLE_DOCS[name])
                for name in counter_names(CAUSES)
            ),
            *(Argument(name=name, kind=ArgumentKind.COUNTER, doc=doc) for name, doc in COUNTS.items()),
            STATUS,
        )
    )
