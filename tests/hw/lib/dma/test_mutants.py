"""Seeded bugs in the DMAs' own source: the tests of the DMAs must find every one of them."""

from __future__ import annotations

import random

import pytest

import hw.lib.dma.read
import hw.lib.dma.write
from hw.lib.dma.align_read import ReadAligner
from hw.lib.dma.align_write import WriteAligner
from hw.lib.dma.burst import BurstSplitter, span
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from tests.hw.lib.dma import test_read, test_write
from tests.support.proofs.mutants import mutant

#: Part that has the bug, its source, the bug.
SHARED = [
    (span, "- 1)[:LENGTH_BITS]", ")[:LENGTH_BITS]"),
    (span, "+ extra)", "+ (extra & 0))"),
    (BurstSplitter, "left <= room", "left < room"),
    (BurstSplitter, "beats.eq(after + 1)", "beats.eq(after)"),
    (BurstSplitter, "left - after - 1", "left - after"),
    (BurstSplitter, "(self.o.ready & fits)", "fits"),
]
READ = [
    (ReadAligner, "alone = aligned | final", "alone = final"),
    (ReadAligner, "alone = aligned | final", "alone = aligned"),
    (ReadAligner, "spent = current.extra & final", "spent = current.extra & (left == 1)"),
    (ReadAligner, "final.eq(self.span.payload.after == 0)", "final.eq(0)"),
    (ReadAligner, "final.eq(left == 1)", "final.eq(left == 0)"),
    (ReadAligner, "(spent | free)", "1"),
    (ReadAligner, "self.i.valid & (head_valid | ~step)", "self.i.valid"),
    (ReadAligner, "lane <= current.tail", "lane < current.tail"),
    (ReadAligner, "last = left == current.extra", "last = left == 0"),
    (ReadAligner, "current.tail + 1, beat_bytes", "current.tail, beat_bytes"),
    (ReadAligner, "Cat(first, second)", "Cat(second, first)"),
    (ReadAligner, "Mux(valid, head[bits], second[bits])", "head[bits]"),
    (ReadDMA, "+ taken)", ")"),
    (ReadDMA, "Mux(issue, splitter.o.payload.beats, 0)", "issue"),
    (ReadDMA, "& ~(beats.empty & ~front_full)", ""),
    (ReadDMA, "Mux(beats.empty, arrived, beats.o.valid)", "arrived | beats.o.valid"),
    (ReadDMA, "Mux(full, front[bits], beat)", "beat"),
    (ReadDMA, "empty.eq(beats.level == 1)", "empty.eq(0)"),
    (ReadDMA, "drained & ~filled", "drained"),
    (ReadDMA, "aligner.i.valid & ~aligner.i.ready)", "offered & ~aligner.i.ready)"),
    (ReadDMA, "self.axi.rresp != axi.RESP_OKAY", "self.axi.rresp == axi.RESP_OKAY"),
    (ReadDMA, "self.command.valid & spans.i.ready)", "self.command.valid)"),
    (ReadDMA, "+ started - finished", "+ started"),
    (ReadDMA, "self.bytes_bus + self._data_width // 8", "self.bytes_bus + 1"),
]
WRITE = [
    (BurstSplitter, "last.eq(fits)", "last.eq(left == room)"),
    (WriteAligner, "flush = current.extra & final", "flush = current.extra"),
    (WriteAligner, "(flush | self.i.valid)", "self.i.valid"),
    (WriteAligner, "active & free & ~flush", "active & free"),
    (WriteAligner, "down.eq(~self.span", "down.eq(self.span"),
    (WriteAligner, "lane >= current.offset", "lane > current.offset"),
    (WriteAligner, "(~final | (lane <= end))", "1"),
    (WriteAligner, "(~first | ", "(0 | "),
    (WriteAligner, "final | block_ends", "final"),
    (WriteAligner, "final | block_ends", "block_ends"),
    (WriteAligner, "position.eq(current.position + 1)", "position.eq(current.position)"),
    (WriteAligner, "previous.eq(self.i.payload)", "previous.eq(0)"),
    (WriteDMA, "some_whole & ", ""),
    (WriteDMA, "some.eq(number != 1)", "some.eq(number != 0)"),
    (WriteDMA, "notes.i.ready & free", "free"),
    (WriteDMA, "notes.i.ready & free", "notes.i.ready"),
    (WriteDMA, " & some_open", ""),
    (WriteDMA, "notes.o.payload),\n            tokens.i.payload", "1),\n            tokens.i.payload"),
    (WriteDMA, "tokens.i.payload.eq(spoiled | wrong)", "tokens.i.payload.eq(wrong)"),
    (WriteDMA, "(spoiled | wrong) & ~notes.o.payload", "spoiled | wrong"),
    (WriteDMA, "notes.o.valid & tokens.i.ready", "notes.o.valid"),
    (WriteDMA, "self.error | wrong", "wrong"),
    (WriteDMA, "+ started - finished", "+ started"),
    (WriteDMA, "self.bytes_bus + self._data_width // 8", "self.bytes_bus + 1"),
]


def some_at_once(bugs):
    """Every fifth bug in `make test`, all of them in `make soak`."""
    return [
        pytest.param(*bug, marks=[pytest.mark.soak] if index % 5 else []) for index, bug in enumerate(bugs)
    ]


def read_tests():
    dut = test_read.ReadDMA(data_width=32, fifo_beats=16, commands=4)
    for stall, stall_o in ((0.0, 0.0), (0.3, 0.3), (0.0, 0.7), (0.7, 0.0)):
        commands = test_read.some_commands(random.Random(2), 8, 200)
        test_read.run(dut, commands, stall=stall, stall_o=stall_o, seed=2, limit=8_000)
    # A deep FIFO behind a slow consumer, and more commands than may be outstanding.
    dut = test_read.ReadDMA(data_width=32, fifo_beats=128, commands=2)
    commands = [{"address": 64 * n, "length": 4} for n in range(12)] + [{"address": 2, "length": 600}]
    test_read.run(dut, commands, stall_o=0.3, stall_command=0.0, seed=2, limit=8_000)
    test_read.test_latency(64, 2)
    test_read.test_unaligned_command_as_long_as_its_words_has_no_gap()
    test_read.test_asks_only_for_what_the_fifo_holds()
    for faulty in (None, 0x80):
        test_read.test_error_stays(faulty)


def write_tests():
    dut = test_write.WriteDMA(data_width=32, fifo_beats=32, commands=4, outstanding=2)
    for stall, stall_i in ((0.0, 0.0), (0.3, 0.3), (0.0, 0.7), (0.7, 0.0)):
        commands = test_write.some_commands(random.Random(2), 8, 200)
        test_write.run(dut, commands, stall=stall, stall_i=stall_i, seed=2, limit=8_000)
    test_write.test_memory_that_takes_an_address_only_after_its_data(0.7)
    test_write.test_address_waits_for_the_whole_burst()
    test_write.test_tokens_nobody_takes_hold_the_responses()
    for faulty, tokens in ((0x100, [0, 1, 0]), (0x80, [1, 0, 0])):
        test_write.test_error_stays_and_marks_its_command(faulty, tokens)


def test_without_a_bug_all_pass():
    read_tests()
    write_tests()


def plant(monkeypatch, module, tests, part, bug):
    """Put the part with the bug where ``module`` (or, for the DMA itself, its tests) look for it."""
    name = part.__name__
    if part is span:
        # The splitter finds `span` in its own module, the DMA in its own.
        monkeypatch.setattr("hw.lib.dma.burst.span", bug)
    monkeypatch.setattr(tests if hasattr(tests, name) else module, name, bug)


def test_every_bug_can_be_planted():
    """Those of the soak, too: their text follows the source's."""
    for bug in SHARED + READ + WRITE:
        mutant(*bug)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("part", "old", "new"), some_at_once(SHARED + READ))
def test_bug_of_reading_is_found(monkeypatch, part, old, new):
    plant(monkeypatch, hw.lib.dma.read, test_read, part, mutant(part, old, new))
    with pytest.raises(AssertionError):
        read_tests()


@pytest.mark.sample(2)
@pytest.mark.parametrize(("part", "old", "new"), some_at_once(SHARED + WRITE))
def test_bug_of_writing_is_found(monkeypatch, part, old, new):
    plant(monkeypatch, hw.lib.dma.write, test_write, part, mutant(part, old, new))
    with pytest.raises(AssertionError):
        write_tests()
