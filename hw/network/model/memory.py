"""The board's memory as the model sees it: latencies, rates, and refreshes of each port's channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hw.board import Board
from hw.network.config import NetworkConfig
from hw.network.model.weights import RING, STATE, PortMemory, WeightState
from hw.scheduler.program.timing.memory import TimingModel

#: Cycles from memory's start to the kernel's: accesses that every kernel needs, and those of a word.
_HOST_CYCLES, _WORD_CYCLES = 40, 4
#: Words of a pointer, and of the sizes of the image.
_POINTER_WORDS, _SIZE_WORDS = 2, 2


@dataclass(frozen=True, kw_only=True)
class MemoryModel:
    """Memory behind all ports of a kernel."""

    main: TimingModel  #: Behind the port of transfers.
    weights: PortMemory  #: Behind each port of weights.
    first_refreshes: tuple[float, ...]  #: Of the channel of each port, transfers first, from the start on.

    @classmethod
    def of(cls, board: Board, config: NetworkConfig) -> MemoryModel:
        """Return the model of a board's calibrated memory.

        Channels refresh one after the other; memory begins with the host's first write.
        """
        main = TimingModel.of(board, word_bytes=config.port_bytes)
        timing, channels, ports = board.dram_timing, board.memory.channels, 1 + config.weight_ports
        held = timing.read_buffer_granules * timing.granule_bytes + timing.fabric_read_bytes
        pointers = 2 + config.weight_ports
        begun = _HOST_CYCLES + _WORD_CYCLES * (_POINTER_WORDS * pointers + _SIZE_WORDS)
        interval = main.refresh_interval_cycles
        shared = -(-config.weight_ports // channels)
        word = main.word_cycles
        if shared > 1:
            # Ports that share a channel share its realistic rate, of which refreshes are counted apart.
            busy = 1 - main.refresh_cycles / interval
            word = max(word, shared * config.port_bytes / board.channel_bytes_per_cycle * busy)
        return cls(
            main=main,
            weights=PortMemory(
                request_cycles=main.read_request_cycles,
                response_cycles=main.read_response_cycles,
                word_cycles=word,
                refresh_interval=interval,
                refresh_cycles=main.refresh_cycles,
                buffer_words=min(RING // 2, max(1, held // config.port_bytes // shared)),
            ),
            first_refreshes=tuple(
                interval * ((port % channels + 1) / channels + 0.5) - begun for port in range(ports)
            ),
        )

    def weight_state(self) -> WeightState:
        """Return the state of the weight stream at the start."""
        ports = np.zeros((len(self.first_refreshes) - 1, 3))
        ports[:, 2] = self.first_refreshes[1:]
        now = np.zeros(STATE, np.int64)
        # Nothing was asked for or adopted yet.
        now[1] = now[3] = -1
        return WeightState(
            ports=ports,
            bus=np.zeros((len(ports), RING)),
            left=np.zeros(RING, np.int64),
            stepped=np.zeros(RING, np.int64),
            now=now,
        )
