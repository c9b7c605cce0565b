"""Formal proofs of Amaranth specs in process-isolated Yosys.

`prove` and `alike` answer for all time, `bounded` for some cycles; `cover` shows that events come up.

A **spec** is an elaboratable that places the block under test.  It drives its inputs with free values
(`free`, or inputs of the spec's own signature), states assumptions (`suppose`) and properties (`check`), and
names events that must be reachable (`reach`)::

    class FifoLevel(Elaboratable):
        def elaborate(self, platform):
            m = Module()
            m.submodules.dut = dut = Fifo(2, depth=3)
            free(m, dut.i.valid, dut.i.payload, dut.o.ready)
            check(m, dut.level <= 3, "level never exceeds the depth")
            reach(m, dut.level == 3, "the FIFO fills up")
            return m

    def test_level():
        prove(FifoLevel(), depth=3)
        cover(FifoLevel(), depth=8)

`prove` answers for **all** times: k-induction with MiniSat (Yosys ``sat -tempinduct``) up to ``depth``, then
property directed reachability (``pdr`` of ABC, which finds inductive invariants by itself).  Induction is
quick with a strong invariant in the spec, which is checked like any property.  PDR needs none but is slow on
wide arithmetic: keep payloads at 1 to 4 bits, counters as narrow as possible.  The order of a 5-deep FIFO
takes 0.1 s by induction with its invariant, over 100 s by PDR without.

`cover` shows that a proof is not empty: every `reach`, and the condition (the enclosing ``m.If``) of every
`check` and `suppose`, can occur without breaking an assumption.

Reset: in Verilog a check becomes an ``assert`` that no reset gates, so it would also fire on power-up values.
`check` and `suppose` therefore do not apply while reset is active.  In proofs the reset is free by default:
it may occur in any cycle.
"""

from __future__ import annotations

import atexit
import functools
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amaranth.back import rtlil
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, ResetSignal, Value

# Amaranth 0.5 has these two but lists them in no public module; nothing else can say "any constant".
from amaranth.hdl._ast import AnyConst, AnySeq
from amaranth.lib import wiring

Reset = Literal["free", "low"]

#: Repository root: the worker is started from here.
ROOT = Path(__file__).resolve().parents[3]


class PropertyFailure(AssertionError):
    """A property does not hold, or an event cannot happen; the message carries the trace."""


class Unproven(AssertionError):
    """Neither induction to the given depth nor PDR settled the question."""


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The result of a successful question.

    Members
    -------
    method : str
        ``induction``, ``pdr``, ``correspondence``, ``bounded`` or ``cover``.
    depth : int
        Induction length, bound, or cycles of the longest covering trace; 0 for PDR.
    seconds : float
        Time in the solver.
    properties : tuple of str
        Messages of the properties that were part of it.
    """

    method: str
    depth: int
    seconds: float
    properties: tuple[str, ...]


def check(m: Module, condition: Any, message: str) -> None:
    """Claim that ``condition`` holds, reset apart, in every cycle in which the enclosing ``m.If`` is on."""
    m.d.comb += Assert(
        Value.cast(condition).bool() | ResetSignal(allow_reset_less=True), message, src_loc_at=1
    )


def suppose(m: Module, condition: Any, message: str) -> None:
    """Rely on ``condition`` in every cycle, reset apart, in which the enclosing ``m.If`` is entered."""
    m.d.comb += Assume(
        Value.cast(condition).bool() | ResetSignal(allow_reset_less=True), message, src_loc_at=1
    )


def reach(m: Module, condition: Any, message: str) -> None:
    """Demand that ``condition`` can become true; only `cover` looks at it."""
    m.d.comb += Cover(condition, message, src_loc_at=1)


def free(m: Module, *signals: Any) -> None:
    """Drive each of ``signals`` with a value that may be anything in every cycle."""
    for signal in signals:
        target = Value.cast(signal)
        m.d.comb += target.eq(AnySeq(len(target)))


def constant(m: Module, *signals: Any) -> None:
    """Drive each of ``signals`` with one value that may be anything but never changes."""
    for signal in signals:
        target = Value.cast(signal)
        m.d.comb += target.eq(AnyConst(len(target)))


def prove(
    spec: Elaboratable,
    depth: int = 4,
    *,
    reset: Reset = "free",
    seconds: int = 60,
    pdr: bool = True,
) -> Proof:
    """Prove every `check` of ``spec`` for all time.

    Parameters
    ----------
    spec
        The spec; inputs of its signature (or of its ``ports``) are free.
    depth
        Longest induction to try, in cycles.
    reset
        ``free``: reset may come at any time.  ``low``: it never comes; the initial state is the reset state.
    seconds
        Limit of each solver.
    pdr
        Whether to try PDR when induction does not settle it.

    Raises
    ------
    PropertyFailure
        With a trace from the initial state to the violation.
    Unproven
        With a trace of the last induction step when there is one: it ends in a violation but starts in a
        state that may be unreachable, and so shows which invariant the spec still lacks.
    """
    answer = _ask(spec, "prove", depth=depth, reset=reset, seconds=seconds, pdr=pdr)
    names = _names(answer["properties"], "assert")
    if not names:
        raise ValueError("the spec has no check to prove")
    induction = answer["induction"]
    if induction["verdict"] == "failed":
        raise PropertyFailure(_failure(answer["properties"], induction["trace"], "is violated"))
    if induction["verdict"] == "proved":
        return Proof(
            method="induction", depth=induction["depth"], seconds=induction["seconds"], properties=names
        )
    found = answer.get("pdr", {"verdict": "not tried", "seconds": 0.0})
    if found["verdict"] == "proved":
        spent = induction["seconds"] + found["seconds"]
        return Proof(method="pdr", depth=0, seconds=spent, properties=names)
    hint = "no trace (out of time)"
    if "trace" in induction:
        hint = _failure(answer["properties"], induction["trace"], "would be violated from this state on")
    raise Unproven(f"not settled by induction to depth {depth}, PDR: {found['verdict']}\n{hint}")


def bounded(
    spec: Elaboratable,
    depth: int,
    *,
    reset: Reset = "free",
    seconds: int = 60,
    solver: Literal["abc", "sat"] = "abc",
) -> Proof:
    """Check every `check` of ``spec`` in the first ``depth`` cycles; parameters and errors as of `prove`.

    ABC is many times as quick as ``sat`` and has no trace.  Where a violation is expected, ask ``sat`` at
    once: it would have to find the trace anyway.
    """
    answer = _ask(spec, "bounded", depth=depth, reset=reset, seconds=seconds, solver=solver)
    names = _names(answer["properties"], "assert")
    if not names:
        raise ValueError("the spec has no check to test")
    found = answer["bounded"]
    if found["verdict"] == "failed":
        raise PropertyFailure(_failure(answer["properties"], found["trace"], "is violated"))
    if found["verdict"] != "held":
        raise Unproven(f"not settled within {seconds} s at depth {depth}")
    return Proof(method="bounded", depth=depth, seconds=found["seconds"], properties=names)


def alike(spec: Elaboratable, depth: int = 0, *, reset: Reset = "low", seconds: int = 60) -> Proof:
    """Prove for all time that two copies in ``spec`` agree: every `check` compares them.

    ABC merges registers that are equal in every cycle (``scorr``), by induction, and asks PDR for the
    other outputs.  Copies of equal structure need no invariant.  A violation in the first ``depth``
    cycles is found before, and named.

    Raises
    ------
    PropertyFailure
        Naming each check that is violated, and its cycle.
    Unproven
        When there is neither a proof nor a violation in ``depth`` cycles.
    """
    answer = _ask(spec, "alike", depth=depth, reset=reset, seconds=seconds)
    names = _names(answer["properties"], "assert")
    if not names:
        raise ValueError("the spec has no check to prove")
    found = answer["alike"]
    if found["verdict"] == "proved":
        return Proof(method="correspondence", depth=0, seconds=found["seconds"], properties=names)
    failed = []
    for entry in answer["properties"]:
        verdict = found["bounded"].get(f"{entry['label']}_hit", {"verdict": "open"})
        if verdict["verdict"] == "failed":
            failed.append(f"{_describe(entry)} is violated in cycle {verdict['depth'] - 1}")
    if failed:
        raise PropertyFailure("\n".join(failed))
    raise Unproven(f"neither proven nor violated in {depth} cycles")


def cover(spec: Elaboratable, depth: int, *, reset: Reset = "low", seconds: int = 60) -> Proof:
    """Show that every `reach` and the condition of every `check` and `suppose` comes up in ``depth`` cycles.

    Raises
    ------
    PropertyFailure
        Naming every event that cannot come up without breaking an assumption.
    """
    answer = _ask(spec, "cover", depth=depth, reset=reset, seconds=seconds)
    missing, longest, spent = [], 0, 0.0
    for entry in answer["properties"]:
        wire = f"{entry['label']}_{'hit' if entry['kind'] == 'cover' else 'on'}"
        found = answer["covers"][wire]
        spent += found["seconds"]
        longest = max(longest, found["depth"])
        if found["verdict"] != "failed":  # a trace to the event is the solver's counterexample to "never"
            missing.append(f"{_describe(entry)}: {found['verdict']}")
    if missing:
        raise PropertyFailure(f"not reachable within {depth} cycles:\n  " + "\n  ".join(missing))
    names = tuple(entry["message"] for entry in answer["properties"])
    return Proof(method="cover", depth=longest, seconds=spent, properties=names)


@functools.cache
def _worker() -> Callable[[Path], int]:
    """Start `tests.support.proofs.worker` once; return a function that runs a job and returns its status."""
    command = [sys.executable, "-m", "tests.support.proofs.worker"]
    worker = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stdin, stdout = worker.stdin, worker.stdout
    assert stdin is not None
    assert stdout is not None

    def answer(job: Path) -> int:
        stdin.write(f"{job}\n")
        stdin.flush()
        return int(stdout.readline())

    def end() -> None:
        stdin.close()
        worker.wait()
        stdout.close()

    atexit.register(end)
    return answer


def _ask(spec: Elaboratable, question: str, **options: Any) -> dict[str, Any]:
    ports = None if isinstance(spec, wiring.Component) else getattr(spec, "ports", [])
    with tempfile.TemporaryDirectory(prefix="formal-") as directory:
        text = Path(directory) / "spec.il"
        text.write_text(rtlil.convert(spec, name="top", ports=ports))
        job = Path(directory) / "job.json"
        job.write_text(json.dumps({"rtlil": str(text), "question": question, "pdr": False, **options}))
        status, answer = _worker()(job), job.with_suffix(".answer.json")
        if status or not answer.exists():
            said = job.with_suffix(".log").read_text(errors="replace")
            raise RuntimeError(f"Yosys failed ({status}):\n{said[-3000:]}")
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def _names(properties: Iterable[dict[str, Any]], kind: str) -> tuple[str, ...]:
    return tuple(entry["message"] for entry in properties if entry["kind"] == kind)


def _describe(entry: dict[str, Any]) -> str:
    return f"{entry['kind']} {entry['message']!r} ({entry['source']})"


def _failure(properties: list[dict[str, Any]], trace: dict[str, list[int]], verdict: str) -> str:
    """Say which checks fail in the last cycle of a trace, and show the trace."""
    broken = [
        _describe(entry)
        for entry in properties
        if entry["kind"] == "assert" and trace.get(f"{entry['label']}_hit", [0])[-1] == 1
    ]
    rows = {
        name: row
        for name, row in trace.items()
        if not name.startswith(("assert_", "assume_", "cover_"))
        and name.split(".")[-1] not in ("clk", "violation")
    }
    return f"{'; '.join(broken) or 'a check'} {verdict}:\n{table(rows)}"


def table(rows: dict[str, list[int]]) -> str:
    """Lay out values over cycles, in hexadecimal: the spec's own signals first, then its submodules'."""
    cycles = max((len(row) for row in rows.values()), default=0)
    cells = {name: [f"{value:x}" for value in row] for name, row in rows.items()}
    width = max((len(cell) for row in cells.values() for cell in row), default=1) + 1
    stem = max((len(name) for name in rows), default=5)
    lines = [" " * stem + " |" + "".join(f"{cycle:>{width}}" for cycle in range(cycles))]
    for name in sorted(cells, key=lambda item: (item.count("."), item)):
        lines.append(f"{name:>{stem}} |" + "".join(f"{cell:>{width}}" for cell in cells[name]))
    return "\n".join(lines)


__all__ = [
    "Proof",
    "PropertyFailure",
    "Unproven",
    "alike",
    "bounded",
    "check",
    "constant",
    "cover",
    "free",
    "prove",
    "reach",
    "suppose",
    "table",
]
