"""The arguments and counters of the oblivious map's kernel."""

import enum
import functools

from hw.lib.arguments import Argument, ArgumentTable, counters, pointer, scalar
from hw.oram.config import OramConfig

#: Ports to the host's memory: of the pages, and of both rings.
PAGE_PORT, RING_PORT = "host0", "host1"
#: Secret arguments by name, and their words of 32 bits.
SECRET_WORDS = {"session_key": 4, "seed": 4, "epoch": 2}
#: The argument whose write ends all writes of secret ones.
LOCK = "lock"
#: Causes of a cycle without an issue, in order of precedence; see `hw.oram.core.touch.touch.Touch`.
CAUSES = ("page", "host", "credit", "deadline")
_CYCLE_DOCS = {
    "cycles_total": "Cycles from start to done",
    "cycles_busy": "Cycles of touches, of initialization and of the erasure",
    "cycles_stall_page": "Cycles in which a touch waited for the earlier touch of its page to end",
    "cycles_stall_host": "Cycles in which a touch waited for the host to read or write",
    "cycles_stall_credit": "Cycles in which the next touch waited for the limit of operations in flight",
    "cycles_stall_deadline": "Cycles in which operations waited for their deadlines",
    "cycles_idle": "Cycles without any operation",
}
_OTHER_DOCS = {
    "status": "Faults that stopped the kernel: see Fault; 0 for none",
    "answered_count": "Responses since reset",
    "rejected_count": "Commands whose tag was wrong, since reset",
    "initialization_cycles": "Cycles of this launch until the map was initialized",
    "erased": "1: all buffers on the card are erased, and no launch is taken until reset; else 0",
}


class Fault(enum.IntFlag):
    """Bits of the counter ``status``: faults that stop a kernel until reset.

    None of them revokes an earlier response.
    """

    LATE_OPERATION = 1  #: The position map was not read by an operation's deadline.
    LATE_TOUCH = 2  #: A record was not read by a touch's deadline.
    LATE_WRITE = 4  #: A write to HBM was not answered in time.
    OVERFLOW = 8  #: An item found its list and all overflow entries in use.
    PAGE = 16  #: A page is not the one written: its tag is wrong.
    BUS = 32  #: Memory answered with an error.
    EMPTY = 64  #: A launch before the map was initialized, or after it was finished.
    AGAIN = 128  #: A second launch that initializes: keys and nonces serve once.
    UNKEYED = 256  #: A launch that initializes before all words of keys and epoch were written.


def position_names(config: OramConfig) -> list[str]:
    """Name the arguments of the position map's ports: first those of table 0, then those of table 1."""
    return [f"position{n}" for n in range(config.position_ports)]


def record_names(config: OramConfig) -> list[str]:
    """Name the arguments of the records' ports."""
    return [f"records{n}" for n in range(config.record_ports)]


@functools.cache
def argument_table(config: OramConfig) -> ArgumentTable:
    """Return the table: scalars, then pointers, then counters.

    The initializing launch takes keys, epoch, and the addresses of pages and tables. The lock follows the
    keys: a host that writes all registers in ascending order locks them. Counters hold only public values:
    bytes of the host's ports, and none of HBM's.
    """

    def secret(name: str, doc: str) -> list[Argument]:
        return [
            scalar(f"{name}{n}", f"Bytes {4 * n} to {4 * n + 3} of {doc}; written once", secret=True)
            for n in range(SECRET_WORDS[name])
        ]

    hbm = [*position_names(config), *record_names(config)]
    bytes_docs = {
        f"{port}_{way}_bytes": f"Bytes of {content} {past}"
        for port, content in ((PAGE_PORT, "pages"), (RING_PORT, "commands and responses"))
        for way, past in (("read", "read"), ("write", "written"))
    }
    return ArgumentTable(
        (
            scalar("initialize", "1: write the empty map first, under new keys; once after reset. Else 0"),
            scalar("finish", "1: erase all buffers on the card and the keys after the last response. Else 0"),
            scalar("operation_count", "Commands of this launch, or 0: until a stop record"),
            scalar("ring_slots", "Records of either ring: a power of two"),
            scalar("poll_cycles", "Cycles from the read of an unwritten command to the next, below 65536"),
            *secret("session_key", "the key of commands and responses"),
            *secret("seed", "the seed of all other keys"),
            *secret("epoch", "the epoch of all keys"),
            scalar(LOCK, "Any write ends the writes of keys and epoch", locks=True),
            pointer("commands", RING_PORT, "Ring of sealed commands"),
            pointer("responses", RING_PORT, "Ring of sealed responses"),
            pointer("pages", PAGE_PORT, "Sealed pages"),
            *(
                pointer(name, f"gmem{n}", f"{'Position map' if name.startswith('p') else 'Records'}, a slice")
                for n, name in enumerate(hbm)
            ),
            *counters(_CYCLE_DOCS | bytes_docs | _OTHER_DOCS),
        )
    )
