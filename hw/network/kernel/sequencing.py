"""The shape of the sequencer and the transfers, in the scheduler's terms."""

from __future__ import annotations

from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.program.program import Core
from hw.scheduler.config import SchedulerConfig


def sequencer_config(config: NetworkConfig) -> SchedulerConfig:
    """Return a scheduler whose cores are the matrix and the vector unit.

    A tensor lies whole in the scratchpad, so no transfer is longer.
    """
    return SchedulerConfig(
        scratchpad_bytes=config.scratchpad_bytes,
        word_bytes=WORD_BYTES,
        banks=config.banks,
        cores=len(Core),
        max_steps=config.max_steps,
        max_transfers=config.max_transfers,
        max_operator_bytes=config.scratchpad_bytes,
        max_region_bytes=config.max_region_bytes,
    )
