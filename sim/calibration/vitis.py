"""AMD's Vitis examples and HBM tutorial: HLS kernels with 512-bit ports on U280 and U50, and HBM Connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hw.board import Memory, load_board
from sim.calibration.experiment import Experiment
from sim.calibration.point import BEAT_BYTES, VITIS, Point, memory_of, stream, total
from sim.calibration.program import Program

_EXAMPLES, _TUTORIAL = "AMD Vitis_Accel_Examples", "AMD Vitis-Tutorials 07-using-hbm, U50"
_STREAM_BYTES = 1 << 19


def _streams(memory: Memory, reads: Mapping[int, int], writes: Mapping[int, int]) -> dict[str, Experiment]:
    """Sequential streams: port to channel, each port beside its channel of the same number."""
    make = {
        kind: {
            port: stream(memory.channel_bytes, channel, bytes_moved=_STREAM_BYTES)
            for port, channel in run.items()
        }
        for kind, run in (("reads", reads), ("writes", writes))
    }
    return {"run": Experiment(bench=VITIS, memory=memory_of(memory, VITIS), **make)}


def _random(memory: Memory, burst_bytes: int, channels: int, *, write: bool = False) -> dict[str, Experiment]:
    """Random bursts of one port, one identifier, over the first channels; with a second port that writes."""
    program = Program(
        window_bytes=channels * memory.channel_bytes,
        stride_bytes=burst_bytes,
        random=True,
        beats=burst_bytes // BEAT_BYTES,
        count=max(2000, 2**20 // burst_bytes) // (1 if channels == 1 else 2),
    )
    writes = {4: replace(program, base=4 * memory.channel_bytes)} if write else {}
    return {
        "run": Experiment(bench=VITIS, memory=memory_of(memory, VITIS), reads={0: program}, writes=writes)
    }


def points() -> list[Point]:
    """Give the points: all channels, random access, several streams in one channel."""
    u280, u50 = load_board("u280").memory, load_board("u50").memory
    all_channels = {port: port for port in range(32)}
    thirds = {kind: dict(list(all_channels.items())[i::2]) for i, kind in enumerate(("reads", "writes"))}
    found = [
        Point(
            key="4",
            title="Sequential, 32 channels",
            published=421.3,
            unit="GB/s",
            source=f"{_EXAMPLES}, U280",
            experiments=_streams(u280, all_channels, {}),
            measure=total,
        ),
        Point(
            key="4w",
            title="Sequential, 16 channels read, 16 written",
            published=421.3,
            unit="GB/s",
            source=f"{_EXAMPLES}, U280",
            experiments=_streams(u280, thirds["reads"], thirds["writes"]),
            measure=total,
            held_out=True,
        ),
        Point(
            key="8",
            title="Random 128 B, one channel",
            published=11.50,
            unit="GB/s",
            source=f"{_EXAMPLES}, U280",
            experiments=_random(u280, 128, 1),
            measure=total,
        ),
        Point(
            key="8w",
            title="Random 128 B, read and written in private channels, each",
            published=11.50,
            unit="GB/s",
            source=f"{_EXAMPLES}, U280",
            experiments=_random(u280, 128, 1, write=True),
            measure=lambda outcomes: total(outcomes) / 2,
            held_out=True,
        ),
        Point(
            key="10",
            title="Random 64 B over 2 channels, one identifier",
            published=0.761,
            unit="GB/s",
            source=_TUTORIAL,
            experiments=_random(u50, 64, 2),
            measure=total,
        ),
    ]
    # The formula t = S / 13.27 + (1 - 1/K) 153.3 ns holds for all published rows within 4.7 %.
    for size in (64, 128, 512, 1024):
        for channels in (1, 2, 4):
            published = {(64, 1): 4.754, (128, 1): 9.599, (512, 1): 13.13, (1024, 1): 13.16, (64, 4): 0.553}
            if (size, channels) == (64, 2):
                continue
            formula = size / (size / 13.27 + (1 - 1 / channels) * 153.3)
            figure = published.get((size, channels), formula)
            limited = channels == 1 and size < 512
            found.append(
                Point(
                    key=f"R{size}x{channels}",
                    title=f"Random {size} B over {channels} channel{'s' * (channels > 1)}, one identifier",
                    published=figure,
                    unit="GB/s",
                    source=_TUTORIAL + ("" if (size, channels) in published else " (formula)"),
                    experiments=_random(u50, size, channels),
                    measure=total,
                    held_out=True,
                    at_least=limited,
                    note="limited by the kernel's 75 M bursts/s" if limited else "",
                )
            )
    same = _streams(u50, {0: 0, 1: 0}, {2: 0})
    for kind in ("reads", "writes"):  # three buffers, one after another in the channel
        for port, program in getattr(same["run"], kind).items():
            program = replace(program, base=port * 2**26, window_bytes=2**26)
            getattr(same["run"], kind)[port] = program
    found += [
        Point(
            key="V1",
            title="Two streams read, one written, one channel",
            published=11.19,
            unit="GB/s",
            source=f"{_EXAMPLES} vadd, U50",
            experiments=same,
            measure=total,
            held_out=True,
        ),
        Point(
            key="V3",
            title="Two streams read, one written, three channels",
            published=30.9,
            unit="GB/s",
            source=f"{_EXAMPLES} vadd, U50",
            experiments=_streams(u50, {0: 0, 1: 1}, {2: 2}),
            measure=total,
            held_out=True,
            at_least=True,
            note="limited by the kernel: the same streams reach 39.2 elsewhere",
        ),
        Point(
            key="V32",
            title="Two streams read, one written, three of 32 channels",
            published=39.2,
            unit="GB/s",
            source=f"{_EXAMPLES}, U50",
            experiments=_streams(u50, {0: 0, 1: 1}, {2: 2}),
            measure=total,
            held_out=True,
        ),
        Point(
            key="V12",
            title="Sequential, 12 channels",
            published=158.3,
            unit="GB/s",
            source=f"{_EXAMPLES}, U50",
            experiments=_streams(u50, {port: port for port in range(12)}, {}),
            measure=total,
            held_out=True,
        ),
        Point(
            key="C16",
            title="Sequential, 16 private channels",
            published=208.5,
            unit="GB/s",
            source="HBM Connect, U280",
            experiments=_streams(u280, {port: port for port in range(16)}, {}),
            measure=total,
            held_out=True,
        ),
    ]
    return found
