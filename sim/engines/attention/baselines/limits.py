"""What traffic is measured against beside the compulsory bytes."""

from __future__ import annotations

from sim.engines.attention.baselines.work import Machine, Work


def flash_law_bytes(work: Work, machine: Machine) -> float:
    """Give ``N^2 d^2 / M`` elements in bytes, M elements on chip.

    Dao et al., "FlashAttention", NeurIPS 2022 (arXiv 2205.14135), theorem 2: its traffic is proportional to
    this; Saha and Ye 2024 (arXiv 2402.07443): no algorithm is below a constant times it for M of at least
    ``d**2``.  **Neither gives the constant**, so it is a yardstick for growth and no bound; below it the
    compulsory bytes are what counts.
    """
    elements = machine.on_chip_bytes / work.input_bytes
    return work.heads * work.queries * work.keys * work.size**2 / elements * work.input_bytes
