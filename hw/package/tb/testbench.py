"""Runs a launch folder on the kernel of the package around it, in any simulator of cocotb.

Variables of the environment name the launch folder (``LOOMWORK_LAUNCH``) and the cycle limit
(``LOOMWORK_CYCLES``).  Every port has a memory of cocotbext-axi.  The test fails where an output buffer
differs from ``expected`` of the launch folder, and for a bit that is neither 0 nor 1 in any register and any
written byte.  Results go to ``results`` of the launch folder, in the format of a card's host script, for
``loomwork verify``.

Needs cocotb and cocotbext-axi, and nothing of Loomwork.
"""

import json
import mmap
import os
import shutil
import time
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotb.types import LogicArray
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

_CONTROL, _START, _DONE, _IDLE = 0x00, 1, 2, 4
_RESET_CYCLES = 20
_PERIOD_NS = 4
#: Cycles between two reads of the control register.
_POLL_CYCLES = 50
#: Most bytes of all buffers; untouched pages take no space.
_MEMORY_BYTES = 1 << 32
#: Alignment of buffers, and least distance between them.
_PAGE_BYTES = 4096
#: Value of every byte of an output buffer before the call.
_UNWRITTEN = 0xC3
_PACKAGE = Path(__file__).resolve().parents[1]


@cocotb.test()
async def carry_out(dut: Any) -> None:
    """Place the buffers, call the kernel once, save its results, and compare them."""
    folder = Path(os.environ["LOOMWORK_LAUNCH"])
    assert (folder / "launch.json").is_file(), f"{folder} is no folder of loomwork launch; set LAUNCH"
    meta = json.loads((_PACKAGE / "meta.json").read_text())
    launch = json.loads((folder / "launch.json").read_text())
    assert launch["config_hash"] == meta["config_hash"], "the launch is one of another configuration"
    memory = mmap.mmap(-1, _MEMORY_BYTES)
    unknown: list[str] = []
    for entry in meta["ports"]:
        _attach(dut, entry["interface"], memory, unknown)
    registers = AxiLiteMaster(
        AxiLiteBus.from_prefix(dut, "s_axi_control"), dut.ap_clk, dut.ap_rst_n, reset_active_level=False
    )
    dut.ap_rst_n.value = 0
    cocotb.start_soon(Clock(dut.ap_clk, _PERIOD_NS, "ns").start())
    await ClockCycles(dut.ap_clk, _RESET_CYCLES)
    dut.ap_rst_n.value = 1
    await ClockCycles(dut.ap_clk, _RESET_CYCLES)

    addresses = _place(folder, launch["arguments"], memory)
    # In one burst: a write for each would take longer than many launches.
    first, block = min(entry["offset"] for entry in launch["arguments"]), bytearray()
    for entry in launch["arguments"]:
        scalar = entry["kind"] == "scalar"
        value = entry["value"] if scalar else addresses[entry["name"]]
        block.extend(
            bytes(entry["offset"] - first - len(block)) + value.to_bytes(4 if scalar else 8, "little")
        )
    await registers.write(first, bytes(block))
    assert await registers.read_dword(_CONTROL) & _IDLE, "the kernel is not idle after reset"
    began = time.monotonic()
    await registers.write_dword(_CONTROL, _START)
    limit = patience = int(os.environ["LOOMWORK_CYCLES"])
    while not await registers.read_dword(_CONTROL) & _DONE:
        assert patience > 0, f"the kernel is not done after {limit} cycles; CYCLES of make is the limit"
        patience -= _POLL_CYCLES
        await ClockCycles(dut.ap_clk, _POLL_CYCLES)
    seconds = time.monotonic() - began
    # In ascending order, so the low word first: reading it latches the high word.
    base = meta["counters"][0]["offset"]
    read = (await registers.read(base, 8 * len(meta["counters"]))).data
    counters = {
        entry["name"]: int.from_bytes(read[entry["offset"] - base :][:8], "little")
        for entry in meta["counters"]
    }
    assert not unknown, f"{len(unknown)} writes have bits that are neither 0 nor 1, the first: {unknown[0]}"
    assert any(counters.values()), "nothing is counted"
    results = {
        entry["name"]: memory[(at := addresses[entry["name"]]) : at + entry["size_bytes"]]
        for entry in launch["arguments"]
        if entry["kind"] == "pointer" and entry["output"]
    }
    _save(folder / "results", launch["config_hash"], results, counters, seconds)
    assert not counters.get("status"), f"the kernel stopped with status {counters['status']}"
    _compare(folder / "expected", launch["arguments"], results)


def _attach(dut: Any, interface: str, memory: mmap.mmap, unknown: list[str]) -> None:
    """Connect the memory to a port; writes of unknown bits are recorded, and become zeros."""
    bus = AxiBus.from_prefix(dut, interface)
    ram = AxiRam(bus, dut.ap_clk, dut.ap_rst_n, reset_active_level=False, size=_MEMORY_BYTES, mem=memory)
    channel = ram.write_if.w_channel
    receive = channel.recv

    async def known() -> Any:
        beat = await receive()
        data, strobes = str(beat.wdata), str(beat.wstrb)
        lanes = [data[at : at + 8] for at in range(0, len(data), 8)]
        for lane, strobe in zip(lanes, strobes, strict=True):
            if strobe not in "01" or (strobe == "1" and set(lane) - {"0", "1"}):
                unknown.append(f"{interface}, data {data}, strobes {strobes}")
                break
        clean = "".join(lane if set(lane) <= {"0", "1"} else "00000000" for lane in lanes)
        beat.wdata = LogicArray(clean)
        return beat

    channel.recv = known


def _place(folder: Path, arguments: list[dict[str, Any]], memory: mmap.mmap) -> dict[str, int]:
    """Lay out the buffers, fill those with data, and return all addresses: 0 for no buffer, and only then."""
    addresses = {entry["name"]: 0 for entry in arguments if entry["kind"] == "pointer"}
    pointers = [entry for entry in arguments if entry["kind"] == "pointer" and entry["size_bytes"]]
    end = _PAGE_BYTES
    for entry in pointers:
        addresses[entry["name"]] = end
        end += -(-entry["size_bytes"] // _PAGE_BYTES) * _PAGE_BYTES + _PAGE_BYTES
    assert end <= _MEMORY_BYTES, "the buffers are larger than the memory"
    for entry in pointers:
        begin = addresses[entry["name"]]
        if entry["given"]:
            data = bytearray((folder / "buffers" / (entry["name"] + ".bin")).read_bytes())
            for link in entry["links"]:
                place = slice(link["offset"], link["offset"] + 8)
                number = int.from_bytes(data[place], "little") + addresses[link["argument"]]
                data[place] = number.to_bytes(8, "little")
            memory[begin : begin + len(data)] = bytes(data)
        elif entry["output"]:
            memory[begin : begin + entry["size_bytes"]] = bytes([_UNWRITTEN]) * entry["size_bytes"]
    return addresses


def _save(
    folder: Path, config_hash: str, results: dict[str, bytes], counters: dict[str, int], seconds: float
) -> None:
    """Write results, counters and time of the call."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in results.items():
        (folder / (name + ".bin")).write_bytes(data)
    hardware = {"device": cocotb.SIM_NAME, "driver": "cocotb", "host_wall_seconds": seconds}
    record = {"format": "loomwork-run-1", "config_hash": config_hash, "counters": counters}
    (folder / "run.json").write_text(json.dumps(record | {"hardware": hardware}, indent=2))


def _compare(folder: Path, arguments: list[dict[str, Any]], results: dict[str, bytes]) -> None:
    """Compare every byte of the output buffers that the golden results determine."""
    differences, total = [], 0
    for entry in arguments:
        count = entry.get("expected_bytes", 0)
        if not count:
            continue
        name, total = entry["name"], total + count
        mask = (folder / f"{name}.mask").read_bytes()
        expected, found = (folder / f"{name}.bin").read_bytes(), results[name]
        assert len(mask) == len(expected) == len(found), f"the sizes of {name} in {folder} are wrong"
        assert mask.count(255) == count, f"{name}.mask in {folder} has not {count} bytes of 255"
        wrong = [at for at, known in enumerate(mask) if known and expected[at] != found[at]]
        cocotb.log.info("%s: %d of %d bytes compared, %d differ", name, count, len(found), len(wrong))
        if wrong:
            at = wrong[0]
            values = f"{found[at]:#04x}, expected {expected[at]:#04x}"
            differences.append(f"{name}: {len(wrong)} bytes, the first at {at:#x}: {values}")
    assert total, f"nothing to compare in {folder}: make the launch again"
    assert not differences, "results differ from the golden model's: " + "; ".join(differences)
