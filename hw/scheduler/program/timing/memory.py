"""The board's memory in the cycle model: latencies, rates and buffers."""

from __future__ import annotations

from typing import NamedTuple

from hw.board import Board


class TimingModel(NamedTuple):
    """One memory port and the channel behind it, in cycles of the kernel's clock.

    Notes
    -----
    The defaults are those of an Alveo U55C at 300 MHz.  A named tuple, because compiled code accepts those.
    """

    #: ``read_request_cycles``, ``read_response_cycles``: address on the bus to the channel; channel to data
    #: on the bus.
    read_request_cycles: float = 14.0
    read_response_cycles: float = 40.0
    #: ``write_request_cycles``, ``write_response_cycles``: data on the bus to the channel; channel to the
    #: response.
    write_request_cycles: float = 14.0
    write_response_cycles: float = 10.0
    word_cycles: float = 2 / 3  #: Channel time of a word.
    bus_cycles: float = 1.0  #: Time of a word on the port.
    turnaround_cycles: float = 5.0  #: Channel time lost with each change of direction.
    #: ``refresh_interval_cycles``, ``refresh_cycles``: interval between refreshes, and the pause of each.
    refresh_interval_cycles: float = 1170.0
    refresh_cycles: float = 110.0
    write_high_words: int = 96  #: Buffered writes that end a run of reads.
    run_words: int = 256  #: Shortest run of one direction while the other waits.
    #: ``write_buffer_words``, ``fabric_words``: writes that the channel, and the interconnect, can buffer.
    write_buffer_words: int = 128
    fabric_words: int = 64

    @classmethod
    def of(cls, board: Board, *, word_bytes: int | None = None) -> TimingModel:
        """Return the model of a board's memory, from its timing; a word is as wide as the port by default."""
        memory, timing = board.memory, board.dram_timing
        axi = board.clock_mhz / timing.axi_clock_mhz
        command = board.clock_mhz / timing.command_clock_mhz
        port_bytes = memory.port_data_width // 8
        word_bytes = word_bytes or port_bytes
        granules = word_bytes / timing.granule_bytes
        return cls(
            read_request_cycles=board.cycles(timing.request_ns),
            # The latency of the first word; rows of later words are opened ahead.
            read_response_cycles=board.cycles(timing.read_response_ns),
            write_request_cycles=board.cycles(timing.request_ns),
            write_response_cycles=board.cycles(timing.write_response_ns),
            word_cycles=max(
                granules * timing.ccd_short_ck * command,
                granules * timing.granule_bytes / timing.port_beat_bytes * axi,
            ),
            bus_cycles=max(1.0, word_bytes / port_bytes),
            # The two directions differ, but alternate.
            turnaround_cycles=board.cycles(timing.turnaround_ns) / 2,
            refresh_interval_cycles=timing.refresh_interval_ck * command,
            refresh_cycles=(timing.refresh_ck + timing.rp_ck) * command,
            write_high_words=max(1, round(timing.write_high_granules / granules)),
            run_words=max(1, round(timing.direction_granules / granules)),
            write_buffer_words=max(1, round(timing.write_buffer_granules / granules)),
            fabric_words=max(1, round(timing.fabric_write_bytes / word_bytes)),
        )
