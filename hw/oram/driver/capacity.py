"""Bytes of every structure in HBM and in the host's memory, and the check of a board's capacity."""

from dataclasses import dataclass

from hw.board import Board, Memory
from hw.errors import InputError
from hw.oram.config import BUCKET_BYTES, OramConfig


@dataclass(frozen=True, kw_only=True)
class Structure:
    """Lines of equal size, distributed over ports in rotation."""

    name: str  #: Printed name.
    #: ``lines``, ``line_bytes``: their number and size.
    lines: int
    line_bytes: int
    ports: int  #: Of the memory, each in a channel of its own if there are enough.

    @property
    def total_bytes(self) -> int:
        """Of all lines."""
        return self.lines * self.line_bytes

    @property
    def port_bytes(self) -> int:
        """Of the lines behind one port."""
        return -(-self.lines // self.ports) * self.line_bytes


def hbm_structures(config: OramConfig) -> list[Structure]:
    """Return the structures in the board's memory; records of HBM bins follow those of pages."""
    return [
        Structure(
            name="position map",
            lines=2 * config.buckets,
            line_bytes=BUCKET_BYTES,
            ports=config.position_ports,
        ),
        Structure(
            name="lists and HBM bins",
            lines=config.records,
            line_bytes=config.record_bytes,
            ports=config.record_ports,
        ),
    ]


def host_structures(config: OramConfig) -> list[Structure]:
    """Return the structures in the host's memory except commands and responses."""
    return [Structure(name="pages", lines=config.host_pages, line_bytes=config.page_bytes, ports=1)]


def hbm_bytes(config: OramConfig) -> int:
    """Add up the structures in the board's memory."""
    return sum(structure.total_bytes for structure in hbm_structures(config))


def capacity_table(config: OramConfig, board: Board) -> list[tuple[str, str, int, int]]:
    """Return rows of memory, structure, bytes, and bytes of the fullest of its channels.

    Raises `InputError` when the board has no access to the host's memory.
    """
    if board.host is None:
        raise InputError("board", board.name, "one with access to the host's memory, where pages lie")
    return [
        (memory.name, structure.name, structure.total_bytes, structure.port_bytes)
        for memory, structures in (
            (board.memory, hbm_structures(config)),
            (board.host, host_structures(config)),
        )
        for structure in structures
    ]


def check_capacity(config: OramConfig, board: Board) -> None:
    """Refuse a configuration whose structures exceed the channels of their ports.

    Ports take the channels in rotation: those of the position map, then those of the records.

    Raises `InputError` with the structures and their bytes.
    """
    table = capacity_table(config, board)
    assert board.host is not None
    over = _fullest(board.memory, hbm_structures(config)) > board.memory.channel_bytes
    over |= host_structures(config)[0].total_bytes > board.host.total_bytes
    if over:
        rows = "".join(
            f"\n  {memory:6} {name:20} {_mib(total):>12} MiB, {_mib(port):>12} MiB a channel"
            for memory, name, total, port in table
        )
        legal = (
            f"small enough for {board.title}, which has {_mib(board.memory.channel_bytes)} MiB in each of "
            f"{board.memory.channels} channels and {_mib(board.host.total_bytes)} MiB of the host's:{rows}\n "
        )
        raise InputError("log_n", config.log_n, legal)


def _fullest(memory: Memory, structures: list[Structure]) -> int:
    """Return the bytes in the fullest channel."""
    channels = [0] * memory.channels
    port = 0
    for structure in structures:
        for _ in range(structure.ports):
            channels[port % memory.channels] += structure.port_bytes
            port += 1
    return max(channels)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f}"
