"""Golden model of programs: commands of all units on the bytes of a scratchpad.

It knows no tensors: a wrong address, tap, band or packet of a compiled network shows as a wrong byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import (
    Addition,
    AttentionCommand,
    MatrixCommand,
    Source,
    TapTile,
    VectorCommand,
    VectorKind,
)
from hw.network.compile.compile import Compiled
from hw.network.compile.lower import Lowered
from hw.network.graph import integers
from hw.scheduler.plan.plan import Direction
from sim.golden.program_attention import attention
from sim.golden.program_wide import Kept, gather, normalize, rounded_sums, stored_bytes, wide

_GRANULE, _WORD = 16, 4


def run(compiled: Compiled, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Execute a compiled network, transfers included, and return its outputs' elements.

    ``inputs``: elements of each input, stored int8 in the order height, width, channels.
    """
    plan, steps = compiled.plan, compiled.steps
    scratchpad = np.zeros((plan.scratchpad_bytes // _GRANULE, _GRANULE), np.int8)
    memory: dict[int, NDArray[np.int8]] = {}
    known: dict[str, Any] = {**compiled.network.constants, **inputs}
    for name, gather_rows in steps.gathers.items():
        known[name] = gather_rows.table[inputs[gather_rows.inputs[0]][:, :, 0]]
    for name, first, rows, address in _homes(compiled):
        elements = known.get(name)
        if elements is not None:
            stored = steps.forms[name].stored(elements)[first : first + rows]
            _store(memory, address, stored.reshape(-1, _GRANULE))
    kept: Kept = {}
    for number, commands in enumerate(compiled.lowered.commands):
        for transfer in plan.transfers:
            if transfer.direction is Direction.READ and transfer.deadline_step == number:
                to = transfer.scratchpad_address // _GRANULE
                count = transfer.size_bytes // _GRANULE
                scratchpad[to : to + count] = _load(memory, transfer.dram_address, count)
        for command in commands:
            execute(command, compiled.lowered, scratchpad, kept)
        for transfer in plan.transfers:
            if transfer.direction is Direction.WRITE and transfer.start_step == number:
                at = transfer.scratchpad_address // _GRANULE
                count = transfer.size_bytes // _GRANULE
                _store(memory, transfer.dram_address, scratchpad[at : at + count])
    found: dict[str, list[NDArray[np.int8]]] = {}
    for name, _, rows, address in _homes(compiled):
        if name in compiled.network.outputs:
            form = steps.forms[name]
            found.setdefault(name, []).append(_load(memory, address, rows * form.row_granules))
    return {name: steps.forms[name].elements(np.concatenate(parts)) for name, parts in found.items()}


def execute(
    command: MatrixCommand | VectorCommand | AttentionCommand,
    lowered: Lowered,
    scratchpad: NDArray[np.int8],
    kept: Kept | None = None,
) -> None:
    """Execute one command on ``scratchpad``, of shape ``(granules, 16)``.

    ``kept``: statistics of pixels, for the commands that write and read them.
    """
    if isinstance(command, AttentionCommand):
        attention(command, scratchpad)
    elif isinstance(command, MatrixCommand):
        _matrix(command, lowered, scratchpad)
    elif command.kind is VectorKind.STATS:
        assert kept is not None
        gather(command, scratchpad, kept)
    elif command.kind is VectorKind.NORM:
        assert kept is not None
        found = normalize(command, lowered.norms[command.norm], scratchpad, kept)
        _write(scratchpad, command, found.astype(np.int8), 0)
    else:
        _vector(command, lowered, scratchpad)


def _homes(compiled: Compiled) -> list[tuple[str, int, int, int]]:
    """Return value, first row, rows and address in memory of each tensor that is ever there."""
    found, reached = [], dict[str, int]()
    for tensor in compiled.plan.graph.tensors:
        name = tensor.origin or tensor.name
        first, rows = reached.get(name, 0), tensor.shape[0]
        reached[name] = first + rows
        if tensor.name in compiled.plan.homes:
            found.append((name, first, rows, compiled.plan.homes[tensor.name]))
    return found


def _store(memory: dict[int, NDArray[np.int8]], address: int, granules: NDArray[np.int8]) -> None:
    for number, granule in enumerate(granules):
        memory[address // _GRANULE + number] = granule.copy()


def _load(memory: dict[int, NDArray[np.int8]], address: int, count: int) -> NDArray[np.int8]:
    empty = np.zeros(_GRANULE, np.int8)
    return np.stack([memory.get(address // _GRANULE + number, empty) for number in range(count)])


def _pixels(command: MatrixCommand | VectorCommand) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column of each output pixel, in order."""
    y, x = np.divmod(np.arange(command.rows * command.columns), command.columns)
    return y, x


def _words(
    command: MatrixCommand | VectorCommand,
    tap: TapTile,
    scratchpad: NDArray[np.int8],
    *,
    further: int = 0,
    column: int = 0,
) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Return the word that a tap reads for each pixel, and which of its granules are in the image.

    ``further``: granules added to the address. ``column``: columns added.
    """
    y, x = _pixels(command)
    source, bounds = (
        command.sources[0] if isinstance(command, VectorCommand) else command.source,
        command.bounds,
    )
    address = source.base + y * source.down + x * source.across + tap.offset + further
    row = y * bounds.stride_y + tap.row
    granules = []
    inside = []
    for number in range(_WORD):
        at = x * bounds.stride_x + tap.columns[number] + column
        here = tap.valid[number] & (row >= 0) & (row < bounds.height) & (at >= 0) & (at < bounds.width)
        read = scratchpad[(address + number) % len(scratchpad)]
        granules.append(np.where(here[:, None], read, np.int8(source.zero)))
        inside.append(here)
    return np.concatenate(granules, axis=1), np.stack(inside, axis=1)


def _added(addition: Addition, first: Any, second: Any, zeros: tuple[int, int], zero: int) -> Any:
    """Return sums of stored operands, with the result's zero point."""
    total = (first - zeros[0]) * addition.first + (second - zeros[1]) * addition.second
    total += zero << addition.shift
    found = integers.rounded_shift(total, addition.shift)
    for pair in addition.exceptions:
        other = 2 * (total >> addition.shift) + 1 - found
        found = np.where((first == pair[0]) & (second == pair[1]), other, found)
    return found


def _residual(
    source: Source, scratchpad: NDArray[np.int8], command: Any, granules: int, *, bits: int = 8
) -> NDArray[np.int64]:
    y, x = _pixels(command)
    address = source.base + y * source.down + x * source.across
    read = [scratchpad[(address + number) % len(scratchpad)] for number in range(granules)]
    return np.concatenate(read, axis=1).view(f"<i{bits // 8}").astype(np.int64)


def _write(scratchpad: NDArray[np.int8], command: Any, results: NDArray[np.int8], first: int) -> None:
    """Write granules ``first`` and later of each pixel."""
    target = command.target
    address = target.base + np.arange(len(results)) * target.pitch + first
    for number in range(results.shape[1] // _GRANULE):
        part = results[:, number * _GRANULE : (number + 1) * _GRANULE]
        scratchpad[(address + number) % len(scratchpad)] = part


def _matrix(command: MatrixCommand, lowered: Lowered, scratchpad: NDArray[np.int8]) -> None:
    beats = iter(lowered.passes[command.weights])
    width = lowered.columns // 2 if command.halves else lowered.columns
    taps = lowered.taps[command.first_tap : command.first_tap + command.taps]
    shifts = command.shifts or (0,) * len(taps)
    target, least = command.target, -1 << command.bits - 1
    results = []
    for tile in range(command.column_tiles):
        sums = np.zeros((command.rows * command.columns, lowered.columns), np.int64)
        for number, (tap, shift) in enumerate(zip(taps, shifts, strict=True)):
            packet = np.stack([next(beats) for _ in range(16)])[::-1].view(np.int8)
            weights = packet.reshape(16, -1, 2, 4).transpose(0, 3, 1, 2).reshape(64, lowered.columns)
            if command.halves:
                assert (weights[:, :width] == weights[:, width:]).all()
            words, _ = _words(command, tap, scratchpad, further=tile * command.group_step)
            sums += (words.astype(np.float64) @ weights.astype(np.float64)).astype(np.int64) << shift
            if number == 0:
                bias, factors, zero = _parameters([next(beats) for _ in range(3)])
        scaled = np.rint((sums + bias).astype(np.float32) * factors).astype(np.float64) + zero
        stored = np.clip(np.clip(scaled, least, -least - 1), target.low, target.high)
        results.append(stored[:, :width].astype(np.int64))
    granules = target.granules
    stored = np.concatenate(results, axis=1)[:, : granules * _GRANULE * 8 // command.bits]
    if command.residual is not None:
        assert command.addition is not None
        other = _residual(command.residual, scratchpad, command, granules, bits=command.bits)
        zero, low, high = command.sum_target
        zeros = target.zero, command.residual.zero
        stored = _added(command.addition, stored, other, zeros, zero)
        stored = np.clip(stored, low, high)
    if command.table >= 0:
        stored = lowered.tables[command.table][stored + 128]
    _write(scratchpad, command, stored.astype(f"<i{command.bits // 8}").view(np.int8), 0)


def _parameters(beats: list[NDArray[np.uint8]]) -> tuple[Any, Any, Any]:
    """Return bias, factor and zero point of each column."""
    fields = np.stack([beat.reshape(-1, 8) for beat in beats[:2]], axis=1).reshape(-1, 8)
    words = fields.copy().view("<u8")[:, 0]
    bias = (words & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64)
    multiplier = (words >> 32 & (1 << 26) - 1).astype(np.float64)
    exponent = (words >> 58 & 15).astype(np.float64)
    zero = beats[2].reshape(-1, 8)[:, :2].reshape(-1).view(np.int8).astype(np.int64)
    return bias, (multiplier / 8.0 ** (exponent + 5)).astype(np.float32), zero


def _vector(command: VectorCommand, lowered: Lowered, scratchpad: NDArray[np.int8]) -> None:
    """Work through the granules of a pixel, a word at a time."""
    taps = lowered.taps[command.first_tap : command.first_tap + command.taps]
    parts = []
    for first in range(0, command.target.granules, _WORD):
        met, inside = [], []
        for tap in taps:
            for column in range(command.kernel_columns):
                words, here = _words(
                    command,
                    tap,
                    scratchpad,
                    further=first + column * command.column_granules,
                    column=column * command.column_step,
                )
                met.append(words.astype(np.int64))
                inside.append(here[:, :1])
        parts.append((np.stack(met), np.stack(inside)))
    stored = _RULES[command.kind](command, lowered, scratchpad, parts)
    target = command.target
    found = np.clip(stored + target.zero, target.low, target.high).astype(np.int8)
    _write(scratchpad, command, found[:, : target.granules * _GRANULE], 0)


def _max(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    found = [np.where(inside, met, -128).max(axis=0) for met, inside in parts]
    return np.concatenate(found, axis=1) - command.target.zero


def _mean(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    found = []
    for met, inside in parts:
        sums = np.where(inside, met - command.sources[0].zero, 0).sum(axis=0)
        counts = inside.sum(axis=0) - 1 if len(command.scales) > 1 else np.zeros((len(sums), 1), np.int64)
        factors = np.array(command.scales, np.float32)[counts]
        found.append(_rounded(command, sums.astype(np.float32) * factors))
    return np.concatenate(found, axis=1)


def _rounded(command: VectorCommand, exact: Any) -> Any:
    """Return float32 results rounded to integers, without their zero point."""
    zero = command.target.zero if command.zero_first else 0
    return np.rint(exact.astype(np.float64) + zero).astype(np.int64) - zero


def _second(command: VectorCommand, scratchpad: Any, parts: Any) -> tuple[Any, Any]:
    first = np.concatenate([met[0] for met, _ in parts], axis=1)
    granules = first.shape[1] // _GRANULE
    return first, _residual(command.sources[1], scratchpad, command, granules)


def _add(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    assert command.addition is not None
    zeros = command.sources[0].zero, command.sources[1].zero
    zero = command.target.zero
    return _added(command.addition, *_second(command, scratchpad, parts), zeros, zero) - zero


def _multiply(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    pair = _second(command, scratchpad, parts)
    first, second = (each - source.zero for each, source in zip(pair, command.sources, strict=True))
    exact = (first * second).astype(np.float32) * np.float32(command.scales[0])
    found = _rounded(command, exact)
    for each in command.exceptions:
        other = 2 * np.floor(exact).astype(np.int64) + 1 - found
        found = np.where((pair[0] == each[0]) & (pair[1] == each[1]), other, found)
    return found


def _table(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    words = np.concatenate([met[0] for met, _ in parts], axis=1)
    return lowered.tables[command.table].astype(np.int64)[words + 128] - command.target.zero


def _softmax(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    words = np.concatenate([met[0] for met, _ in parts], axis=1)[:, : command.channels]
    powers = lowered.exponentials[command.table]
    terms = powers[words.max(axis=1, keepdims=True) - words]
    bits = integers.SOFTMAX_FRACTION_BITS
    total = terms.sum(axis=1, keepdims=True)
    found = (2 * terms * command.steps + (total << bits)) // (total << bits + 1)
    padded = np.zeros((len(found), command.target.granules * _GRANULE), np.int64)
    padded[:, : command.channels] = found
    return padded


def _add16(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    assert command.addition is not None
    first, second = (wide(each) for each in _second(command, scratchpad, parts))
    total = first * command.addition.first + second * command.addition.second
    return stored_bytes(rounded_sums(total, command.addition))


def _mean16(command: VectorCommand, lowered: Lowered, scratchpad: Any, parts: Any) -> Any:
    assert command.addition is not None
    sums = [np.where(inside, wide(met), 0).sum(axis=0) for met, inside in parts]
    total = np.concatenate(sums, axis=1) * command.addition.first
    return stored_bytes(rounded_sums(total, command.addition))


_RULES = {
    VectorKind.MAX: _max,
    VectorKind.MEAN: _mean,
    VectorKind.ADD: _add,
    VectorKind.MULTIPLY: _multiply,
    VectorKind.TABLE: _table,
    VectorKind.SOFTMAX: _softmax,
    VectorKind.ADD16: _add16,
    VectorKind.MEAN16: _mean16,
}
