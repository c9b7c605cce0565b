"""The workload of a launch: its cost depends on the program alone, not on the values of tensors."""

from dataclasses import dataclass

from hw.network.program.program import NetworkProgram


@dataclass(frozen=True, kw_only=True)
class NetworkWorkload:
    """One launch of the network engine."""

    program: NetworkProgram
