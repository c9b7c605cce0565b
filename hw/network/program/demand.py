"""The limits of a kernel that a network exceeds under any plan, known before one is searched."""

from __future__ import annotations

from hw.errors import InputError
from hw.network.compile.costs import lower_whole
from hw.network.compile.steps import steps_of
from hw.network.config import NetworkConfig
from hw.network.graph.network import Attention, Network
from hw.network.program.image import needs
from hw.network.program.program import NetworkProgram, Step


def check_demand(network: Network, config: NetworkConfig) -> None:
    """Refuse a network whose program no plan makes small enough for a kernel.

    Commands are those of values whole in the scratchpad, without transfers.  A plan that cuts values has more
    commands and more rows of taps, and the same tables and factors.

    Raises `InputError` for a kernel without a unit that the network needs, and with the limit, and the
    operator with whose commands it is exceeded.
    """
    if not config.attention_rows and any(isinstance(each, Attention) for each in network.operators):
        legal = "at least 1, as the network has attention; examples/tokens.yaml has 16"
        raise InputError("attention_rows", config.attention_rows, legal)
    lowered = lower_whole(steps_of(network), columns=config.columns)
    steps = tuple(
        Step(command=command, operator=operator, planned=number)
        for number, commands in enumerate(lowered.commands)
        for command, operator in zip(commands, lowered.operators[number], strict=True)
    )
    program = NetworkProgram(
        name=network.name,
        columns=lowered.columns,
        scratchpad_bytes=0,
        steps=steps,
        reads=(),
        writes=(),
        taps=lowered.taps,
        passes=(),
        tables=lowered.tables,
        exponentials=lowered.exponentials,
        inputs=(),
        constants=(),
        outputs=(),
        contents={},
        norms=lowered.norms,
    )
    needs(program, config)
