"""LUTs and longest paths of the ciphers, as mapped by Yosys; minutes, so only in the soak."""

from __future__ import annotations

import pytest
from amaranth.hdl import Const, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.board import load_board
from hw.lib.convert import to_verilog
from hw.lib.place import CellPlacer
from hw.oram.core.crypto.aes_lane import AesLane
from hw.oram.core.crypto.config import PageShape
from hw.oram.core.crypto.front import Front
from hw.oram.core.crypto.gf_multiplier import GfMultiplier
from hw.oram.core.crypto.key_schedule import KeySchedule
from hw.oram.core.crypto.page_open import PageOpen
from hw.oram.core.crypto.page_seal import PageSeal
from hw.oram.core.crypto.power_table import PowerTable
from sim.build.synthesis import synthesize
from sim.timing.estimate import estimate

PAGE = PageShape(page_bytes=256, lanes=4)
RECORD = PageShape(page_bytes=64, lanes=1)


class Ports(wiring.Component):
    """A unit with ports for all inputs that are not constant."""

    def __init__(self, unit):
        self._unit = unit
        self._ports = {
            "__".join(map(str, path)): (member.flow, Value.cast(value))
            for path, member, value in unit.signature.flatten(unit)
            if not isinstance(value, Const)
        }
        super().__init__({name: flow(len(value)) for name, (flow, value) in self._ports.items()})

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = self._unit
        for name, (flow, value) in self._ports.items():
            port = getattr(self, name)
            m.d.comb += port.eq(value) if flow is Out else value.eq(port)
        return m


def front(interval):
    return lambda placer: Front(key_bits=64, draws=1, interval=interval, placer=placer)


#: Maximum LUTs, and maximum picoseconds of the longest path.
UNITS = {
    "aes_lane": (AesLane, 7248, 1518),
    "gf_multiplier": (GfMultiplier, 5070, 1532),
    "key_schedule": (lambda placer: KeySchedule(), 804, 1555),
    "power_table": (lambda placer: PowerTable(PAGE, placer), 5196, 1532),
    "page_open": (lambda placer: PageOpen(PAGE, placer), 49260, 1831),
    "page_seal": (lambda placer: PageSeal(PAGE, placer), 49550, 1831),
    "record_open": (lambda placer: PageOpen(RECORD, placer), 13762, 1720),
    "record_seal": (lambda placer: PageSeal(RECORD, placer), 13811, 1720),
    "front_4": (front(4), 14677, 1518),
    "front_5": (front(5), 8906, 1518),
}


@pytest.mark.soak
@pytest.mark.parametrize("name", UNITS)
def test_gates(name):
    make, luts, most_ps = UNITS[name]
    placer = CellPlacer(sources=True)
    top = f"{name}_top"
    text = to_verilog(Ports(make(placer)), name=top, sources=True)
    verilog = placer.verilog + text
    found = estimate(verilog, top, load_board("u55c"))
    total = synthesize(verilog, top).total
    assert found.endpoints_over == 0
    assert total.lut <= luts
    assert found.budget_ps - found.worst_slack_ps <= most_ps + 1
