"""The network engine, as the generator sees it."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from hw.board import Board
from hw.board.regions import Regions
from hw.board.resources import RamWords, Resources
from hw.engine import Engine
from hw.errors import InputError
from hw.lib.arguments import ArgumentTable
from hw.lib.memory import RamStyle
from hw.lib.place import Placer
from hw.network.config import NetworkConfig
from hw.network.kernel.arguments import argument_table, weight_ports
from hw.network.kernel.body import NetworkBody
from hw.network.kernel.signals import signals
from hw.network.program.program import NetworkProgram
from hw.network.regions import regions
from hw.network.resources import estimate, ram_words
from hw.prediction import Prediction

#: Shapes tried for a board, largest first, each with scratchpads down to `_LEAST_BYTES`; the first that fits
#: is the default.
_DEFAULTS = (
    NetworkConfig(),
    NetworkConfig(scratchpad_bytes=2 << 20, banks=8, columns=32, weight_ports=4, lanes=32),
    NetworkConfig(
        scratchpad_bytes=1 << 20,
        banks=4,
        columns=16,
        weight_ports=1,
        lanes=16,
        max_steps=512,
        max_transfers=512,
        max_taps=1024,
        vector_taps=256,
        scales=256,
        tables=16,
        exponentials=2,
    ),
)
#: Widths of a memory port that its words may have.
_PORT_BITS = (128, 256, 512)
#: Smallest scratchpad tried.
_LEAST_BYTES = 1 << 18
#: Kinds of its RAM, in the order tried.
_MEMORIES: tuple[RamStyle, ...] = ("ultra", "block")


class NetworkEngine(Engine[NetworkConfig, NetworkProgram]):
    """Whole quantized networks, a program each; see `hw.network`."""

    name = "network"
    summary = "whole int8 convolutional networks from ONNX, each a program for one kernel"
    config_type = NetworkConfig
    workload_type = NetworkProgram
    data_cells = (
        "network_cell",
        "network_drain_lanes",
        "network_vector_granule",
        "network_vector_root",
        "network_granule_bank",
        "attention_rows",
        "attention_results",
    )
    modelled = True

    def default_config(self, board: Board) -> NetworkConfig:
        """Return the largest shape that leaves a fifth of the board free: most columns, then most bytes.

        Raises `InputError` when a word of the board's memory port is not one of 16 to 64 bytes.
        """
        return self.first_fit(_shapes(board), board)

    def arguments(self, config: NetworkConfig, board: Board) -> ArgumentTable:
        """See `hw.network.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: NetworkConfig, board: Board, placer: Placer) -> NetworkBody:
        """Make a `NetworkBody`; raise `InputError` when words are not as wide as the memory port."""
        width = board.memory.port_data_width // 8
        if config.port_bytes != width:
            raise InputError("port_bytes", config.port_bytes, f"{width}, the port of {board.name}'s memory")
        return NetworkBody(config, placer)

    def resources(self, config: NetworkConfig, board: Board) -> Resources:
        """See `hw.network.resources.estimate`."""
        return estimate(config)

    def ram_words(self, config: NetworkConfig, board: Board) -> RamWords:
        """See `hw.network.resources.ram_words`."""
        return ram_words(config)

    def placement(self, config: NetworkConfig, board: Board) -> dict[str, int]:
        """Assign each port a channel of its own, while there are free channels."""
        ports = self.arguments(config, board).ports
        return {port: int(port.removeprefix("gmem")) % board.memory.channels for port in ports}

    def regions(self, config: NetworkConfig, board: Board) -> Regions:
        """See `hw.network.regions.regions`."""
        return regions(config, board)

    def data_ports(self, config: NetworkConfig, board: Board) -> tuple[str, ...]:
        """Return the ports of weights."""
        return tuple(weight_ports(config))

    def signals(self, config: NetworkConfig) -> dict[str, str]:
        """See `hw.network.kernel.signals.signals`."""
        return signals(config)

    def predict(self, workload: NetworkProgram, config: NetworkConfig, board: Board) -> Prediction:
        """See `hw.network.predict.predict`."""
        # Imported here: listing engines, or running another one, must not load Numba.
        from hw.network.predict import predict

        return predict(workload, config, board)


def _shapes(board: Board) -> Iterator[NetworkConfig]:
    """Yield the shapes tried, largest first."""
    bits = board.memory.port_data_width
    if bits not in _PORT_BITS:
        legal = f"one of {', '.join(map(str, _PORT_BITS))} bit for the network engine"
        raise InputError(f"port_width of {board.name}'s memory", bits, legal)
    for shape in _DEFAULTS:
        # Wide ports are fewer: together they have at most the bits of a packet's word.
        ports = min(shape.weight_ports, shape.matrix.packet_bits // bits)
        halved = (shape.scratchpad_bytes >> n for n in range(shape.scratchpad_bytes.bit_length()))
        sizes = [size for size in halved if size >= _LEAST_BYTES]
        for memory, size in itertools.product(_MEMORIES, sizes):
            yield replace(
                shape, port_bytes=bits // 8, weight_ports=ports, memory=memory, scratchpad_bytes=size
            )
