"""Parts of the scheduler put together for tests."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib.place import InlinePlacer
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.operator_port import OperatorPort
from hw.scheduler.core.scratchpad import Scratchpad
from hw.scheduler.operators.traffic import TrafficEngine


def config_for(*, words: int = 64, word_bytes: int = 8, cores: int = 1, banks: int = 4) -> SchedulerConfig:
    """Return a configuration whose widths fit operands as large as the scratchpad."""
    return SchedulerConfig(
        max_operator_bytes=words * word_bytes,
        scratchpad_bytes=words * word_bytes,
        word_bytes=word_bytes,
        banks=banks,
        cores=cores,
    )


class OneOperator(wiring.Component):
    """A traffic engine at its port, on a scratchpad; command, operands, rings and other ports are the test's.

    The test writes through write port 0 and reads through the last read port.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.operator = TrafficEngine(config)
        self.port = OperatorPort(config)
        self.scratchpad = Scratchpad(config, InlinePlacer())
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.operator = self.operator
        m.submodules.port = self.port
        m.submodules.scratchpad = self.scratchpad
        m.d.comb += self.port.i_done.eq(self.operator.done)
        connect(m, self.operator.read, self.port.i_read)
        connect(m, self.operator.write, self.port.i_write)
        connect(m, self.port.o_response, self.operator.response)
        connect(m, self.port.read, self.scratchpad.read[0])
        connect(m, self.port.write, self.scratchpad.write[1])
        return m
