"""Memories of the model."""

import math

from hw.network.config import NetworkConfig
from hw.network.model.memory import MemoryModel
from hw.network.model.weights import PortMemory
from hw.scheduler.program.timing.memory import TimingModel


def ideal(config: NetworkConfig, *, latency: float, word_cycles: float = 1.0) -> MemoryModel:
    """Return the model of `tests.support.gateware.axi_memory`: a latency, a word a cycle, no refreshes."""
    return MemoryModel(
        main=TimingModel(
            read_request_cycles=0.0,
            read_response_cycles=float(latency),
            write_request_cycles=0.0,
            write_response_cycles=float(latency),
            word_cycles=word_cycles,
            turnaround_cycles=0.0,
            refresh_interval_cycles=math.inf,
        ),
        weights=PortMemory(
            request_cycles=0.0,
            response_cycles=float(latency),
            word_cycles=word_cycles,
            refresh_interval=math.inf,
            refresh_cycles=0.0,
            buffer_words=1024,
        ),
        first_refreshes=(math.inf,) * (1 + config.weight_ports),
    )
