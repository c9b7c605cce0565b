"""Launch folders for a card: written, replayed in simulation, verified."""

import dataclasses
import io
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from hw.board import Board
from hw.board.form import read_board
from hw.config import config_dict, config_hash
from hw.edge import Document, validate
from hw.errors import InputError
from hw.launch import Launch, Tensor, Tensors
from hw.lib.arguments import ArgumentKind, Register
from hw.registry import find_engine
from hw.verilog import kernel_name
from sim.host.progress import ProgressLine
from sim.run import launch_folder as folder
from sim.run.adapter import EngineAdapter
from sim.run.expected import Expected, expected_bytes
from sim.run.host_call import TensorEntry, described
from sim.run.launch_folder import Manifest, RunRecord
from sim.run.memories import memory_of_port, uncounted_traffic
from sim.run.result import RunResult
from sim.run.run import Measured, Prepared, Target, compare, find_adapter, measured
from sim.run.tensors import load_tensors

#: The fastest clock that global buffers of these devices distribute (UltraScale+, speed grade 3): the
#: limit of any kernel, also of one built for another clock than its board's.
_MOST_HERTZ = 891e6
_AS_INPUTS = "as the folder's inputs make it; make the launch again"


def write_launch(
    target: Target, board_file: Path, given: Mapping[str, Path], directory: Path, *, seed: int
) -> Manifest:
    """Make a launch folder of a user's files.

    ``board_file``: the target board's. ``given``: the user's files by their options. ``seed``: of everything
    random in the inputs.

    Raises `InputError` when a value is illegal, the directory holds anything but an earlier launch, or cannot
    be written.
    """
    folder.check_replaceable(directory)
    adapter, config = target.adapter, target.config
    prepared = target.prepare(adapter.read_files(given, config, seed=seed))
    launch = adapter.launch(prepared.job, config, target.board)
    entries, arrays = _tensors(prepared, launch)
    with ProgressLine("Golden model"):
        integers = adapter.golden(prepared.job, config)
    expected = _expected(prepared, launch, integers)
    manifest = _manifest(prepared, launch, expected, seed=seed, inputs=tuple(given), tensors=entries)
    golden = _archive(integers)
    kinds = {name: adapter.input_file(name, str(path)) for name, path in given.items()}
    files = {kinds[name].copy_name: kinds[name].kept(path) for name, path in given.items()}
    files[folder.BOARD] = board_file
    if entries:
        files[folder.PLACES] = _archive(arrays, np.savez_compressed)
    folder.write_launch(directory, manifest, launch, files, golden, expected)
    return manifest


def _archive(arrays: Tensors, save: Callable[..., None] = np.savez) -> bytes:
    content = io.BytesIO()
    save(content, allow_pickle=False, **dict(arrays))
    return content.getvalue()


def _tensors(prepared: Prepared, launch: Launch) -> tuple[tuple[TensorEntry, ...], dict[str, Tensor]]:
    """Return the tensors of a job's call, and the arrays of their places."""
    target = prepared.target
    call = target.adapter.host_call(prepared.job, target.config, target.board)
    if call is None:
        return (), {}
    return described(call, {each.argument: each.size_bytes for each in launch.buffers if each.output})


def replay(
    directory: Path, *, work: Path, memory_mode: str = "model", seed: int = 0, waves: Path | None = None
) -> Path | None:
    """Simulate a launch folder and leave the results in it, as a card's host script does.

    ``work`` gets the simulator's log. Returns the waveform file, whose suffix may differ from that of
    ``waves``. Raises as `sim.run.run.run` does.
    """
    manifest, launch = folder.read_manifest(directory), folder.read_launch(directory)
    prepared = _prepared(directory, manifest)
    simulated = prepared.simulate(launch, directory=work, memory_mode=memory_mode, seed=seed, waves=waves)
    known = measured(simulated, prepared, memory_mode=memory_mode, seed=seed)
    record = RunRecord(
        config_hash=manifest.config_hash,
        counters=dict(known.counters),
        simulation=dict(known.simulation or {}),
        memory=[dict(entry) for entry in known.memory],
        tool_versions=dict(known.tool_versions),
    )
    folder.write_results(directory, simulated.buffers, record)
    return simulated.waves


def verify(directory: Path) -> RunResult:
    """Compare the results in a launch folder, of a card or a replay, with the golden model bit for bit.

    The report is missing where the host script could not read the counters.  Three things are mismatches:
    counters that contradict each other, bytes that the launch does not move, and more cycles than any clock
    has in the wall time.  Raises `InputError` when there are no results yet, a file is damaged, or call or
    golden results do not match the folder's inputs.
    """
    manifest = folder.read_manifest(directory)
    prepared = _prepared(directory, manifest)
    target = prepared.target
    buffers, record = folder.read_results(directory, manifest)
    known = None
    if record.counters is not None:
        traffic = uncounted_traffic(target.table.ports, target.placement, target.board)
        known = Measured(
            counters=record.counters,
            memory=record.memory if record.hardware is None else traffic,
            simulation=record.simulation,
            hardware=None if record.hardware is None else dataclasses.asdict(record.hardware),
            tool_versions=record.tool_versions,
        )
    with ProgressLine("Golden model"):
        golden = target.adapter.golden(prepared.job, target.config)
    if compare(load_tensors(directory / folder.GOLDEN), golden):
        path = directory / folder.GOLDEN
        raise InputError("golden results", str(path), "what the golden model makes of the folder's inputs")
    _check_call(directory, manifest, prepared, golden)
    stopped = known is not None and prepared.faults(known.counters)
    further = () if known is None or stopped else tuple(_impossible(prepared, known, record))
    try:
        return prepared.judge(golden, buffers, known, further=further)
    except InputError as error:
        if known is None:
            raise
        # Counters of broken hardware: the outputs are compared all the same.
        return prepared.judge(
            golden, buffers, None, further=(f"The counters contradict themselves: {error}",)
        )


def _impossible(prepared: Prepared, known: Measured, record: RunRecord) -> Iterator[str]:
    """Return a line for each counter that is impossible for this job."""
    prediction = prepared.prediction
    for way, least in (("read", prediction.read_bytes_total), ("write", prediction.write_bytes_total)):
        names = {f"{port}_{way}_bytes" for port in prepared.target.table.ports} & known.counters.keys()
        moved = sum(known.counters[name] for name in names)
        if names and (moved < least or (moved > least and not prediction.open_ended)):
            legal = f"{least:,}{' or more' if prediction.open_ended else ''}"
            yield f"The counters tell of {moved:,} {way} bytes, and this launch has {legal}"
    cycles, hardware = known.counters.get("cycles_total", 0), record.hardware
    if hardware is not None and cycles > hardware.host_wall_seconds * _MOST_HERTZ:
        legal = f"the {hardware.host_wall_seconds:g} s of the call have at {_MOST_HERTZ / 1e6:g} MHz"
        yield f"The counters tell of {cycles:,} cycles, more than {legal}"


def _expected(prepared: Prepared, launch: Launch, golden: Tensors) -> dict[str, Expected]:
    """Return the bytes of the output buffers that the golden results determine."""
    adapter, job, config = prepared.target.adapter, prepared.job, prepared.target.config
    return expected_bytes(
        launch,
        lambda buffers: adapter.stored(job, config, buffers),
        adapter.stored_golden(job, config, golden),
    )


def _manifest(
    prepared: Prepared,
    launch: Launch,
    after: Mapping[str, Expected],
    *,
    seed: int,
    inputs: tuple[Any, ...],
    tensors: tuple[TensorEntry, ...] = (),
) -> Manifest:
    """Return the manifest of a job's call."""
    target = prepared.target
    engine, config, board = target.engine, target.config, target.board
    return Manifest.of(
        launch,
        {register.argument.name: _place(register, board) for register in target.table.registers},
        after,
        engine=engine.name,
        kernel=kernel_name(engine),
        board=board.name,
        config=config_dict(config),
        config_hash=config_hash(engine.name, config, board),
        seed=seed,
        inputs=inputs,
        counters={register.argument.name: register.offset for register in target.table.counter_registers},
        tensors=tensors,
    )


def _check_call(directory: Path, manifest: Manifest, prepared: Prepared, golden: Tensors) -> None:
    """Raise `InputError` where arguments, buffers or expected bytes do not follow from a folder's inputs."""
    target = prepared.target
    made = target.adapter.launch(prepared.job, target.config, target.board)
    after = _expected(prepared, made, golden)
    expected = _manifest(prepared, made, after, seed=manifest.seed, inputs=manifest.inputs)
    for found, argument in zip_longest(manifest.arguments, expected.arguments):
        if found != argument:
            name = found.name if found else argument.name
            raise InputError(f"argument of {directory / folder.MANIFEST}", name, _AS_INPUTS)
    kept = {buffer.argument: buffer.data for buffer in folder.read_launch(directory).buffers}
    for buffer in made.buffers:
        found = kept.get(buffer.argument)
        if found is not None and buffer.data is not None and not np.array_equal(found, buffer.data):
            path = directory / "buffers" / f"{buffer.argument}.bin"
            raise InputError("buffer", str(path), _AS_INPUTS)
    for name, found in folder.read_expected(directory, manifest).items():
        for suffix, ours, theirs in (
            ("bin", found.content, after[name].content),
            ("mask", found.mask, after[name].mask),
        ):
            if not np.array_equal(ours, theirs):
                path = directory / folder.EXPECTED / f"{name}.{suffix}"
                raise InputError("expected bytes", str(path), _AS_INPUTS)


def _place(register: Register, board: Board) -> dict[str, Any]:
    """Return the register's offset and, of a pointer, its port and memory."""
    place: dict[str, Any] = {"offset": register.offset}
    if register.argument.kind is ArgumentKind.POINTER and register.argument.port is not None:
        memory = memory_of_port(register.argument.port, board)
        place |= {"port": register.argument.port, "memory": memory.name}
    return place


def _copy_name(adapter: EngineAdapter, option: str) -> str:
    """Return where a launch folder keeps the user's file of an option."""
    return adapter.input_file(option, option).copy_name


def _prepared(directory: Path, manifest: Manifest) -> Prepared:
    """Make the job of a launch folder again from its files."""
    # A board is called as its file is.
    board = dataclasses.replace(read_board(directory / folder.BOARD), name=manifest.board)
    engine = find_engine(manifest.engine)
    document = Document(path=directory / folder.MANIFEST, data=manifest.config, prefix=("config",))
    config = validate(document, TypeAdapter(engine.config_type))
    digest = config_hash(engine.name, config, board)
    if digest != manifest.config_hash:
        legal = f"{digest}, which is its configuration's: make the launch again with this Loomwork"
        raise InputError(f"config_hash of {directory}", manifest.config_hash, legal)
    adapter = find_adapter(engine.name)
    given = {name: directory / _copy_name(adapter, name) for name in manifest.inputs}
    tensors = adapter.read_files(given, config, seed=manifest.seed)
    return Target.of(engine.name, config, board).prepare(tensors)
