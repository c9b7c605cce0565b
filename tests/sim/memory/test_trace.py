"""The trace of a memory's ports: every transfer that a manager saw, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.board.memory_timing import HostTiming
from hw.errors import InputError
from sim.memory.trace import TRANSFER, Channel, accesses, read_trace, write_bus_trace
from tests.support.memory.master import RandomManager, config, read_all, run_managers, write_all
from tests.support.memory.native import NativeMemory


def test_transfers_in_order(tmp_path):
    path = tmp_path / "bus.trace"
    traced = replace(config(HostTiming(), ports=2, channels=1), trace=path, base_address=1 << 40)
    with NativeMemory(config=traced, data_bits=512) as memory:
        asked, got = read_all(memory, [(1 << 40) + 4096, (1 << 40) + 128], port=1, beats=2)
        last, answered = write_all(memory, [(1 << 40) + 256], beats=3)
        assert memory.view.errors(at_end=True) == []
        trace = read_trace(path)
    reads, writes = trace[trace["port"] == 1], trace[trace["port"] == 0]
    address, first = reads[reads["channel"] == Channel.AR], 1 << 40
    assert address["cycle"].tolist() == asked
    assert address["address"].tolist() == [first + 4096, first + 128]
    assert address["bytes"].tolist() == [128, 128]
    beats = reads[reads["channel"] == Channel.R]
    assert beats["cycle"].tolist() == got
    assert beats["address"].tolist() == [first + 4096, first + 4160, first + 128, first + 192]
    assert writes["channel"].tolist() == [Channel.AW, *[Channel.W] * 3, Channel.B]
    assert writes["address"].tolist() == [first + at for at in (256, 256, 320, 384, 256)]
    assert writes["bytes"].tolist() == [192, 64, 64, 64, 0]
    assert writes["cycle"][3:].tolist() == [last[0], answered[0]]
    assert np.all(np.diff(trace["cycle"].astype(np.int64)) >= 0)
    assert len(accesses(trace)) == 3


def test_random_traffic_is_counted_alike(tmp_path):
    path = tmp_path / "bus.trace"
    traced = replace(config(HostTiming(), ports=2, channels=1), trace=path, jitter_percent=30, seed=1)
    with NativeMemory(config=traced, data_bits=128) as memory:
        run_managers(
            memory, [RandomManager(memory, p, range(8192 * p, 8192 * p + 8192), p, 80) for p in (0, 1)]
        )
        counted = memory.view.counters()["ports"]
        assert memory.view.errors(at_end=True) == []
        trace = read_trace(path)
    for number, port in enumerate(counted):
        own = trace[trace["port"] == number]
        sums = {c: own[own["channel"] == c]["bytes"].sum() for c in Channel}
        counts = {c: np.count_nonzero(own["channel"] == c) for c in Channel}
        assert sums[Channel.AR] == sums[Channel.R] == port["read_bytes"]
        assert sums[Channel.AW] == sums[Channel.W] == port["write_bytes"]
        assert (counts[Channel.AR], counts[Channel.AW]) == (port["read_bursts"], port["write_bursts"])
        assert counts[Channel.B] == port["write_bursts"]
        waited = {c: own[own["channel"] == c]["waited"].sum() for c in Channel}
        for channel, name in (
            (Channel.AR, "read_address"), (Channel.AW, "write_address"), (Channel.W, "write_data"),
            (Channel.R, "read_data"), (Channel.B, "response"),
        ):  # fmt: skip
            assert waited[channel] == port[f"{name}_stall_cycles"] > 0


def test_accesses_as_text(tmp_path):
    transfers = [
        (10, 0x1000, 256, 0, Channel.AR, 0),
        (20, 0x1000, 64, 0, Channel.R, 0),
        (30, 0x1000, 256, 0, Channel.AW, 0),
        (30, 0x1000, 64, 0, Channel.W, 0),
        (31, 0x8000, 64, 1, Channel.AW, 0),
        (40, 0x1000, 0, 0, Channel.B, 0),
    ]
    write_bus_trace(tmp_path / "bus.csv", np.array(transfers, TRANSFER), ["host0", "host1"])
    assert (tmp_path / "bus.csv").read_text().splitlines() == [
        "cycle,port,direction,address,bytes",
        "10,host0,read,0x1000,256",
        "30,host0,write,0x1000,256",
        "31,host1,write,0x8000,64",
    ]


def test_a_file_that_cannot_be_written(tmp_path, capfd):
    with pytest.raises(InputError, match="accepted by the models"):
        NativeMemory(config=replace(config(HostTiming(), channels=1), trace=tmp_path / "none" / "bus.trace"))
    assert "cannot be written" in capfd.readouterr().err


def test_files_that_are_no_traces(tmp_path):
    with pytest.raises(InputError, match="trace"):
        read_trace(tmp_path / "missing")
    (tmp_path / "short").write_bytes(bytes(TRANSFER.itemsize + 1))
    with pytest.raises(InputError, match="whole records"):
        read_trace(tmp_path / "short")
