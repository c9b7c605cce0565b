"""The memories behind a kernel's ports: their names, modes and counts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hw.board import Board, Memory
from hw.errors import InputError, check_one_of
from sim.bench.plan import PlacedBuffer
from sim.memory.config import memory_config, parameter_text
from sim.run.adapter import Tamper

#: ``model``: calibrated. ``fast``: fixed latency and bandwidth. ``jitter``: the same, with random waits.
MODES = ("model", "fast", "jitter")


def is_host_port(port: str) -> bool:
    """Return whether an AXI port leads to the host's memory: these are named ``host*``."""
    return port.startswith("host")


def memory_of_port(port: str, board: Board) -> Memory:
    """Return the memory behind an AXI port: the host's (`is_host_port`), else the board's own.

    Raises `InputError` for a port of the host if the board has no host memory.
    """
    if not is_host_port(port):
        return board.memory
    if board.host is None:
        raise InputError("board", board.name, f"one with host memory: the kernel has the port {port}")
    return board.host


def ports_by_memory(ports: Sequence[str], board: Board) -> dict[str, list[str]]:
    """Group the kernel's ports by the name of the memory behind them, in order."""
    groups: dict[str, list[str]] = {}
    for port in ports:
        groups.setdefault(memory_of_port(port, board).name, []).append(port)
    return groups


def memory_parameters(
    ports: Sequence[str],
    placement: Mapping[str, int],
    buffers: Sequence[PlacedBuffer],
    board: Board,
    *,
    mode: str,
    seed: int,
    traces: Mapping[str, Path],
    tampers: Sequence[Tamper] = (),
) -> str:
    """Return the parameter text of all memories behind ``ports``; see `sim.memory.config.memory_config`.

    ``traces`` has the trace file of each recorded memory, by its name; ``tampers`` change bytes of
    ``buffers``. Raises `InputError` when no port leads to a memory of ``traces``.
    """
    behind_ports = ports_by_memory(ports, board)
    for name in traces:
        check_one_of("trace of memory", name, behind_ports)
    configs = []
    for name, behind in behind_ports.items():
        config = memory_config(
            memory_of_port(behind[0], board),
            [placement[port] for port in behind],
            clock_mhz=board.clock_mhz,
            mode=mode,
            seed=seed,
        )
        working_set = sum(buffer.size_bytes for buffer in buffers if buffer.memory == name)
        places = {buffer.argument: buffer.address for buffer in buffers if buffer.memory == name}
        changes = [
            _change(tamper, places[tamper.argument]) for tamper in tampers if tamper.argument in places
        ]
        configs.append(
            replace(config, working_set_bytes=working_set, trace=traces.get(name), tampers=changes)
        )
    return parameter_text(configs)


def _change(tamper: Tamper, address: int) -> tuple[int, int, int, int, int, int]:
    """Return a tamper with addresses."""
    read, to, source = (address + place for place in (tamper.read, tamper.to, tamper.source))
    return read, tamper.skip, to, source, tamper.size_bytes, tamper.mask


def channel_traffic(
    ports: Sequence[str], placement: Mapping[str, int], board: Board, counted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the memories' counts: an entry for each channel that a port is connected to.

    ``bus_read_bytes`` and ``bus_write_bytes`` of a channel are the beats of its ports: every buffer lies in
    the channel of its port.  ``ports`` has ``read_bytes`` and ``write_bytes`` of each port by its name.
    ``events`` has the model's counters of the channel and the waits of its ports.
    """
    entries = []
    for name, behind in ports_by_memory(ports, board).items():
        by_port, by_channel = counted[name]["ports"], counted[name]["channels"]
        for channel in dict.fromkeys(placement[port] for port in behind):
            behind_it = {port: by_port[i] for i, port in enumerate(behind) if placement[port] == channel}
            here = behind_it.values()
            events = {
                key: sum(port[key] for port in here)
                for key in by_port[0]
                if key.endswith("_stall_cycles") or key == "read_wait_cycles"
            }
            if len(by_channel) == memory_of_port(behind[0], board).channels:
                model = by_channel[channel]
                events |= {key: value for key, value in model.items() if not key.endswith("_bytes")}
            entries.append(
                {
                    "memory": name,
                    "channel": channel,
                    "bus_read_bytes": sum(port["read_bytes"] for port in here),
                    "bus_write_bytes": sum(port["write_bytes"] for port in here),
                    "ports": {
                        port: {key: own[key] for key in ("read_bytes", "write_bytes")}
                        for port, own in behind_it.items()
                    },
                    "events": events,
                }
            )
    return entries


def uncounted_traffic(
    ports: Sequence[str], placement: Mapping[str, int], board: Board
) -> list[dict[str, Any]]:
    """Return `channel_traffic` of hardware, whose memories count nothing: all bytes are None."""
    behind: dict[tuple[str, int], dict[str, None]] = {}
    for port in ports:
        behind.setdefault((memory_of_port(port, board).name, placement[port]), {})[port] = None
    return [
        {
            "memory": memory,
            "channel": channel,
            "bus_read_bytes": None,
            "bus_write_bytes": None,
            "ports": moved,
            "events": {},
        }
        for (memory, channel), moved in behind.items()
    ]
