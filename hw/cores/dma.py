"""Shapes of the DMAs, as files have them."""

from dataclasses import dataclass

from hw.errors import InputError, check_field_types, check_range
from hw.lib import axi
from hw.lib.dma.burst import check_bursts
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA


@dataclass(frozen=True, kw_only=True)
class _DmaConfig:
    """What both have in common."""

    data_width: int = 256  #: Bits of a beat, on the bus and of a word of the stream: 32 to 1024.
    addr_width: int = 64  #: Bits of an address: 13 to 64.
    id_width: int = 1  #: Bits of a transaction identifier, which is 0: 1 to 16.
    burst_beats: int = 16  #: Beats of the longest burst: a power of two up to 16, within 4 KiB.

    def _check(self, fifo_beats: int, commands: int) -> None:
        check_field_types(self)
        axi.Signature(data_width=self.data_width, addr_width=self.addr_width, id_width=self.id_width)
        check_bursts(data_width=self.data_width, burst_beats=self.burst_beats)
        if fifo_beats < self.burst_beats:
            raise InputError("fifo_beats", fifo_beats, f"at least burst_beats ({self.burst_beats})")
        check_range("commands", commands, 1)


@dataclass(frozen=True, kw_only=True)
class ReadConfig(_DmaConfig):
    """Shape of `hw.lib.dma.read.ReadDMA`."""

    #: Beats outstanding or in the FIFO, at least ``burst_beats``; the memory's latency plus ``burst_beats``
    #: keep it busy.
    fifo_beats: int = ReadDMA.FIFO_BEATS
    commands: int = 64  #: Commands whose data may be outstanding, at least 1.
    whole: bool = False  #: Addresses and lengths are multiples of a beat; then there is no shifter.

    def __post_init__(self) -> None:
        self._check(self.fifo_beats, self.commands)


@dataclass(frozen=True, kw_only=True)
class WriteConfig(_DmaConfig):
    """Shape of `hw.lib.dma.write.WriteDMA`."""

    #: Beats that may wait for the bus, at least ``burst_beats``; twice that for one beat a cycle.
    fifo_beats: int = WriteDMA.FIFO_BEATS
    commands: int = 16  #: Commands that may wait for their first burst, and ``done`` tokens, at least 1.
    outstanding: int = WriteDMA.OUTSTANDING  #: Bursts that may wait for their response, at least 1.

    def __post_init__(self) -> None:
        self._check(self.fifo_beats, self.commands)
        check_range("outstanding", self.outstanding, 1)
