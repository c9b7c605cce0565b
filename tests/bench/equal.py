"""cocotb test of a bench that compares two modules by itself."""

import cocotb
from cocotb.triggers import RisingEdge


@cocotb.test
async def ends(top):
    await RisingEdge(top.done)
