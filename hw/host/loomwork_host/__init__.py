"""Calls Loomwork's kernels on a card, through XRT or PYNQ: NumPy in, NumPy out.

    with loomwork_host.open("kernel.xclbin") as card:
        attention = card.load("card")
        results = attention.run(q=q, k=k, v=v)

A folder of `loomwork launch` names the kernel, and locates every tensor in its buffers.  NumPy is needed, and
pyxrt on a machine with XRT or pynq on a board.
"""

from .card import Call, Card, Launch, open
from .errors import (
    BusyError,
    CardError,
    FailedError,
    FaultError,
    HostError,
    InputError,
    LateError,
)

__all__ = [
    "BusyError",
    "Call",
    "Card",
    "CardError",
    "FailedError",
    "FaultError",
    "HostError",
    "InputError",
    "LateError",
    "Launch",
    "open",
]

__version__ = "0.1.0"
