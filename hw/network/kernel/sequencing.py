"""The shape of transfers, in the scheduler's terms."""

from __future__ import annotations

from hw.network.config import WORD_BYTES, NetworkConfig
from hw.scheduler.config import SchedulerConfig


def issue_config(config: NetworkConfig) -> SchedulerConfig:
    """Return a scheduler whose transfers are those of a network's program.

    A tensor lies whole in the scratchpad, so no transfer is longer.
    """
    return SchedulerConfig(
        scratchpad_bytes=config.scratchpad_bytes,
        word_bytes=WORD_BYTES,
        banks=config.banks,
        cores=1,
        max_steps=1,
        max_transfers=config.max_transfers,
        max_operator_bytes=config.scratchpad_bytes,
        max_region_bytes=config.max_region_bytes,
    )
