"""The oblivious map, as the generator sees it."""

from __future__ import annotations

from hw.board import Board
from hw.board.resources import Resources
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.oram.config import OramConfig
from hw.oram.kernel.arguments import argument_table
from hw.oram.kernel.body import OramBody
from hw.oram.model.capacity import check_capacity
from hw.prediction import Prediction


class OramEngine(Engine[OramConfig, object]):
    """A map in the host's memory whose accesses tell the host nothing; see `hw.oram`."""

    name = "oram"
    summary = "oblivious map in the host's memory: get, put, delete at a fixed rate, sealed pages"
    config_type = OramConfig
    workload_type = object

    def default_config(self, board: Board) -> OramConfig:
        """Give the map of 2^20 keys of 8 bytes."""
        return OramConfig()

    def arguments(self, config: OramConfig, board: Board) -> ArgumentTable:
        """See `hw.oram.kernel.arguments.argument_table`."""
        check_capacity(config, board)
        return argument_table(config)

    def body(self, config: OramConfig, board: Board, placer: Placer) -> OramBody:
        """Make an `OramBody`."""
        return OramBody(config, placer)

    def resources(self, config: OramConfig, board: Board) -> Resources:
        """See ..."""
        return Resources(dsp=1, lut=1, ff=1, bram36=1, uram=0)

    def placement(self, config: OramConfig, board: Board) -> dict[str, int]:
        """Give each port to HBM a channel of its own, as far as there are any; the host has one."""
        hbm = [port for port in self.arguments(config, board).ports if port.startswith("gmem")]
        channels = {port: n % board.memory.channels for n, port in enumerate(hbm)}
        return {"host1": 0, "host0": 0} | channels

    def predict(self, workload: object, config: OramConfig, board: Board) -> Prediction:
        """See ..."""
        raise NotImplementedError
