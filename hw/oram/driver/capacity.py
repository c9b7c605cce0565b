"""Bytes of every structure in HBM and in the host's memory, and the check of a board's capacity."""

from dataclasses import dataclass, replace

from hw.board import Board, Memory
from hw.board.files import boards_with_host_memory
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
    #: Odd lines behind a port have the halves of every 64 bytes swapped: `hw.oram.movers.hbm.lines`.
    swapped: bool = False

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
            swapped=True,
        ),
    ]


def host_structures(config: OramConfig) -> list[Structure]:
    """Return the structures in the host's memory except commands and responses."""
    return [Structure(name="pages", lines=config.host_pages, line_bytes=config.page_bytes, ports=1)]


def hbm_bytes(config: OramConfig) -> int:
    """Add up the structures in the board's memory."""
    return sum(structure.total_bytes for structure in hbm_structures(config))


def host_memory(board: Board) -> Memory:
    """Return the host's memory of a board.

    Raises `InputError` with the names of the boards that have access to it.
    """
    if board.host is None:
        legal = f"one with access to the host's memory, where pages lie: {boards_with_host_memory()}"
        raise InputError("board", board.name, legal + ", or a path to a .yaml file of another")
    return board.host


def capacity_table(config: OramConfig, board: Board) -> list[tuple[str, str, int, int]]:
    """Return rows of memory, structure, bytes, and bytes of the fullest of its channels.

    Raises `InputError` when the board has no access to the host's memory.
    """
    host = host_memory(board)
    return [
        (memory.name, structure.name, structure.total_bytes, structure.port_bytes)
        for memory, structures in (
            (board.memory, hbm_structures(config)),
            (host, host_structures(config)),
        )
        for structure in structures
    ]


def check_capacity(config: OramConfig, board: Board) -> None:
    """Refuse a configuration whose structures exceed the channels of their ports.

    Ports take the channels in rotation: those of the position map, then those of the records.

    Raises `InputError` with the structures and their bytes, and with numbers of ports that suffice.
    """
    table = capacity_table(config, board)
    assert board.host is not None
    wider = with_enough_ports(config, board)
    if wider != config:
        rows = "".join(
            f"\n  {memory:6} {name:20} {_mib(total):>12} MiB, {_mib(port):>12} MiB a channel"
            for memory, name, total, port in table
        )
        ports = f" or have record_ports {wider.record_ports}" if wider else ""
        if wider and wider.position_ports != config.position_ports:
            ports += f" and position_ports {wider.position_ports}"
        channels = f"{_mib(board.memory.channel_bytes)} MiB in each of {board.memory.channels} channels"
        host = f"{_mib(board.host.total_bytes)} MiB of the host's"
        legal = f"small enough{ports} for {board.title}, which has {channels} and {host}:{rows}\n "
        raise InputError("log_n", config.log_n, legal)


def with_enough_ports(config: OramConfig, board: Board) -> OramConfig | None:
    """Return the configuration, with 16 ports of records, or of both structures, if it fits no other way.

    Returns nothing when it never fits. ``board`` must have access to the host's memory.
    """
    assert board.host is not None
    if host_structures(config)[0].total_bytes > board.host.total_bytes:
        return None
    more_records = replace(config, record_ports=16)
    for wider in (config, more_records, replace(more_records, position_ports=16)):
        if _fullest(board.memory, hbm_structures(wider)) <= board.memory.channel_bytes:
            return wider
    return None


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
