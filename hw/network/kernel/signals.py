"""Signals of the kernel that a simulation logs: commands of each core, work, and words at memory ports."""

from __future__ import annotations

from collections.abc import Mapping

from amaranth.hdl import Module, Signal, Value

from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.kernel.arguments import weight_ports

#: Of each core, and of the kernel: see `signals`.
_OF_CORE, _DONE = ("takes", "ends", "works"), "launch_done"


def signals(config: NetworkConfig) -> dict[str, str]:
    """Return the paths of signals, by name.

    ``CORE_takes``, ``CORE_ends``: a command enters its unit, a command is finished; a cycle each, in order.
    ``CORE_works``: the unit works, as the counters have it. ``PORT_R`` and ``PORT_W``: a word is offered at a
    memory port, and with ``_ready`` it is taken; of weights the first port alone, as all have equal shares.
    ``launch_done``: the launch is over.
    """
    cores = [core for core in Core if core is not Core.ATTENTION or config.attention_rows]
    names = [*(f"{core.name.lower()}_{each}" for core in cores for each in _OF_CORE), _DONE]
    found = {name: f"body.{name}" for name in names}
    for port, channels in (("gmem0", "RW"), (weight_ports(config)[0], "R")):
        for channel in channels:
            found[f"{port}_{channel}"] = f"m_axi_{port}_{channel}VALID"
            found[f"{port}_{channel}_ready"] = f"m_axi_{port}_{channel}READY"
    return found


def name_signals(
    m: Module, *, takes: Mapping[Core, Value], ends: Value, works: Mapping[Core, Value], done: Value
) -> None:
    """Give the signals of the body their names in its Verilog; parameters are those of `signals`."""
    for core, take in takes.items():
        for each, value in zip(_OF_CORE, (take, ends[core], works[core]), strict=True):
            signal = Signal(name=f"{core.name.lower()}_{each}")
            m.d.comb += signal.eq(value)
    signal = Signal(name=_DONE)
    m.d.comb += signal.eq(done)
