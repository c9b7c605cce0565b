"""The arguments and counters of the scheduler kernel."""

from __future__ import annotations

from hw.lib.arguments import Argument, ArgumentTable, Kind
from hw.lib.counters import counter_names

#: Why nothing was done in a cycle, in order of precedence.
CAUSES = ("write", "read", "ring", "bank", "drain")
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles in which an operator moved a word or computed",
    "cycles_stall_write": "Cycles before a slot, waiting for a transfer to memory",
    "cycles_stall_read": "Cycles before an operator, waiting for a transfer from memory",
    "cycles_stall_ring": "Cycles in which operators waited for the other end of a ring",
    "cycles_stall_bank": "Cycles in which operators waited for a bank of the scratchpad",
    "cycles_stall_drain": "Cycles after the last operator, waiting for transfers to memory",
    "cycles_idle": "Cycles of the sequencer and of operators filling their pipelines",
}
#: Counters beside those of cycles.
COUNTS = {
    "gmem0_read_bytes": "Bytes read from memory",
    "gmem0_write_bytes": "Bytes written to memory",
    "steps_total": "Steps computed",
}


def argument_table() -> ArgumentTable:
    """Give the table: the pointer, then counters."""
    return ArgumentTable(
        (
            Argument(
                name="memory",
                kind=Kind.POINTER,
                doc="The program's region of the memory, where every tensor has its home",
                port="gmem0",
            ),
            *(
                Argument(name=name, kind=Kind.COUNTER, doc=_CYCLE_DOCS[name])
                for name in counter_names(CAUSES)
            ),
            *(Argument(name=name, kind=Kind.COUNTER, doc=doc) for name, doc in COUNTS.items()),
        )
    )
