"""Buffers of a launch: sizes of all structures, and lines found again behind their ports."""

from dataclasses import replace

import numpy as np

from hw.oram.config import OramConfig
from hw.oram.driver.buffers import board_arguments, gather_lines, launch_buffers, swap_halves
from hw.oram.driver.capacity import Structure


def test_sizes():
    config = OramConfig(log_n=10, position_ports=4, record_ports=2, interval_cycles=16)
    commands = np.arange(3 * config.command_bytes, dtype=np.uint8).reshape(3, -1)
    buffers = {buffer.argument: buffer for buffer in launch_buffers(config, commands)}
    assert np.array_equal(buffers["commands"].data, commands.reshape(-1))
    assert buffers["responses"].size_bytes == 3 * config.command_bytes
    assert buffers["pages"].size_bytes == config.host_pages * config.page_bytes
    position = sum(b.size_bytes for name, b in buffers.items() if name.startswith("position"))
    assert position == 2 * config.buckets * 128
    records = [b.size_bytes for name, b in buffers.items() if name.startswith("records")]
    assert len(records) == 2
    assert sum(records) >= config.records * config.record_bytes
    assert [name for name, buffer in buffers.items() if buffer.output] == ["responses"]
    assert all(buffer.output for buffer in launch_buffers(config, commands, state=True)[1:])


def test_lines_are_spread_in_turn():
    config = OramConfig(log_n=8, record_ports=4, interval_cycles=8)
    structure = board_arguments(config)["records0"]
    assert structure.lines % 4  # the last line of ports is incomplete
    ports = [np.full(structure.port_bytes, 255, np.uint8) for _ in range(4)]
    for line in range(structure.lines):
        at = line // 4 * structure.line_bytes
        ports[line % 4][at : at + structure.line_bytes] = line % 251
    structure = replace(structure, swapped=False)
    lines = gather_lines(structure, ports)
    assert lines.shape == (structure.lines, structure.line_bytes)
    assert np.array_equal(lines[:, 0], np.arange(structure.lines) % 251)
    assert (lines == lines[:, :1]).all()


def test_halves_of_odd_lines_are_swapped():
    """By the byte: record n of 192 bytes, its bytes from 64 n on."""
    structure = Structure(name="records", lines=6, line_bytes=192, ports=2, swapped=True)
    rows = [np.arange(64 * n, 64 * n + 192).astype(np.uint8) for n in range(6)]
    ports = [bytearray(structure.port_bytes) for _ in range(2)]
    for line, row in enumerate(rows):
        place = line // 2
        for at, byte in enumerate(row):
            ports[line % 2][192 * place + (at ^ 32 if place == 1 else at)] = byte
    buffers = [np.frombuffer(port, np.uint8) for port in ports]
    assert np.array_equal(gather_lines(structure, buffers), rows)
    behind = buffers[1].reshape(-1, 192)
    assert np.array_equal(swap_halves(structure, swap_halves(structure, behind)), behind)
    assert not np.array_equal(gather_lines(replace(structure, swapped=False), buffers), rows)
