"""The oblivious map as an engine of the generator."""

from pathlib import Path

from hw.board import Board
from hw.board.regions import Regions
from hw.board.resources import Resources
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.oram.config import OramConfig
from hw.oram.driver.capacity import check_capacity
from hw.oram.driver.workload import OramWorkload
from hw.oram.kernel.arguments import argument_table
from hw.oram.kernel.body import OramBody
from hw.oram.model.predict import predict
from hw.oram.regions import regions
from hw.oram.resources import estimate
from hw.oram.sizing.failures import check_overflow


class OramEngine(Engine[OramConfig, OramWorkload]):
    """A map in the host's memory whose accesses reveal nothing to the host; see `hw.oram`."""

    name = "oram"
    summary = "oblivious map in the host's memory: get, put, delete at a fixed rate, sealed pages"
    config_type = OramConfig
    workload_type = OramWorkload
    #: The host's script writes commands into the ring.
    templates = Path(__file__).with_name("templates")
    # Lines are short, and a narrower interconnect would miss deadlines.
    bursts_under_way = (256, 256)
    # Traffic of the board's memory depends on secrets, and is not predicted.
    predicts_host = True

    def default_config(self, board: Board) -> OramConfig:
        """Return the map of 2^20 keys with values of 8 bytes.

        Raises `InputError` when the board has no access to the host's memory, or too little of its own.
        """
        config = OramConfig()
        check_capacity(config, board)
        return config

    def arguments(self, config: OramConfig, board: Board) -> ArgumentTable:
        """See `hw.oram.kernel.arguments.argument_table`.

        Raises `InputError` when the map does not fit, with the structures and their bytes, or when its lists
        may overflow.
        """
        check_overflow(config)
        check_capacity(config, board)
        return argument_table(config)

    def body(self, config: OramConfig, board: Board, placer: Placer) -> OramBody:
        """Make an `OramBody`."""
        return OramBody(config, placer)

    def resources(self, config: OramConfig, board: Board) -> Resources:
        """See `hw.oram.resources.estimate`."""
        return estimate(config)

    def regions(self, config: OramConfig, board: Board) -> Regions:
        """See `hw.oram.regions.regions`."""
        return regions(config, board)

    def placement(self, config: OramConfig, board: Board) -> dict[str, int]:
        """Distribute the ports to HBM over its channels; the host's memory has one channel."""
        ports = self.arguments(config, board).ports
        hbm = [port for port in ports if port.startswith("gmem")]
        return dict.fromkeys(ports, 0) | {port: n % board.memory.channels for n, port in enumerate(hbm)}

    predict = staticmethod(predict)
