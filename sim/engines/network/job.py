"""A launch of a network as the simulation side sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hw.launch import Tensor
from hw.network.driver.region import region_of
from hw.network.graph.network import Network
from hw.network.program.program import NetworkProgram

#: Byte that fills the region outside of inputs and constants before the launch.
EMPTY = 0x5A


@dataclass(frozen=True, kw_only=True)
class NetworkJob:
    """One launch of a network."""

    network: Network
    program: NetworkProgram
    inputs: dict[str, Tensor]  #: Stored elements of each input.

    @cached_property
    def region(self) -> np.ndarray:
        """The program's region of the memory before the launch."""
        return region_of(self.program, self.inputs, fill=EMPTY)
