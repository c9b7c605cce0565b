"""cocotb tests of a counter that counts to its limit; COUNTER_TEST selects one."""

import os

import cocotb
from cocotb.triggers import RisingEdge

CHOSEN = os.environ.get("COUNTER_TEST", "counts")


@cocotb.test(skip=CHOSEN != "counts")
async def counts(top):
    top.limit.value = 1000
    await RisingEdge(top.done)
    assert top.value.value == 1001


@cocotb.test(skip=CHOSEN != "fails")
async def fails(top):
    await RisingEdge(top.clk)
    assert top.value.value == 7, "the counter is not seven"


@cocotb.test(skip=CHOSEN != "ends")
async def ends(top):
    top.quit.value = 1
    await RisingEdge(top.done)


@cocotb.test(skip=CHOSEN != "sleeps")
async def sleeps(top):
    top.limit.value = 0xFFFFFFFF
    await RisingEdge(top.done)
