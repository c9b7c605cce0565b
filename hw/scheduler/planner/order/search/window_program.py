"""The order of the operators in a window of steps, with the residency of what they touch, by CP-SAT.

Runs in `hw.scheduler.planner.solvers.worker`, the only process with OR-tools.  Model: a position for each
operator of the window, all different; for each tensor a row of optional stays (retention intervals, as in
Moccasin, ICML 2023), each from its beginning to its last use, and for each use the stay it hits or a stream
of its own; one cumulative resource, the scratchpad.  Stays in number rather than a decision for each tensor
and step keep the model small.  Tensors that the window does not touch stay or leave as the hint says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ortools
from ortools.sat.python import cp_model


def reorder(payload: dict[str, Any]) -> dict[str, Any]:
    """Look for a better order within a window of steps.

    Parameters
    ----------
    payload : dict
        ``operands``: for each operator, lists of tensor, whether it is written (0 or 1), units that
        streaming saves, whether it streams alone (0 or 1); ``fifo``: units of each operator; ``size``,
        ``source``, ``spills``: of each tensor, the latter two 0 or 1; ``capacity`` in units; ``order``: the
        order known, ``streamed``, ``kept``: lists as ``operands``, 0 or 1: its residency; ``window``: first
        step and the step after the last; ``refetches``: stays that a tensor may have more than in the
        residency known; ``work``: CP-SAT's deterministic seconds; ``seconds``: safety net; ``seed``.

    Returns
    -------
    dict
        ``status``: ``optimal``, ``feasible``, ``infeasible`` or ``unknown``; ``order``: the best found;
        ``timed``: whether the safety net ended it; ``version`` of OR-tools.
    """
    window = _Window(payload=payload)
    window.build()
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = 1
    parameters.random_seed = payload["seed"]
    parameters.max_deterministic_time = payload["work"]
    parameters.max_time_in_seconds = payload["seconds"]
    status = solver.solve(window.model)
    names = {
        cp_model.OPTIMAL: "optimal",
        cp_model.FEASIBLE: "feasible",
        cp_model.INFEASIBLE: "infeasible",
        cp_model.UNKNOWN: "unknown",
    }
    if status not in names:
        raise ValueError(f"the model is not valid: {window.model.validate()}")
    order = payload["order"]
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        order = sorted(order, key=lambda operator: solver.value(window.position[operator]))
    return {
        "status": names[status],
        "order": order,
        "timed": solver.wall_time >= payload["seconds"],
        "version": ortools.__version__,
    }


@dataclass
class _Window:
    """A model under construction."""

    payload: dict[str, Any]
    model: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    position: dict[int, Any] = field(default_factory=dict)
    intervals: list[Any] = field(default_factory=list)
    demands: list[int] = field(default_factory=list)
    cost: list[Any] = field(default_factory=list)
    streams: dict[tuple[int, int], Any] = field(default_factory=dict)

    def build(self) -> None:
        """Fill the model."""
        payload = self.payload
        self.operands: list[list[list[int]]] = payload["operands"]
        self.step = {operator: step for step, operator in enumerate(payload["order"])}
        self.first, self.end = payload["window"]
        self.moving = payload["order"][self.first : self.end]
        self.events = self._events()
        self._positions()
        touched = {tensor for operator in self.moving for tensor, *_ in self.operands[operator]}
        background = [0] * len(self.step)
        for tensor, events in self.events.items():
            if tensor in touched:
                self._stays(tensor, events)
            else:
                self._as_known(tensor, events, background)
        for operator, units in enumerate(payload["fifo"]):
            if units:
                self._load(operator, units)
        self._lone()
        for step, units in enumerate(background):
            if units:
                self.intervals.append(self.model.new_fixed_size_interval_var(step, 1, f"known{step}"))
                self.demands.append(units)
        self.model.add_cumulative(self.intervals, self.demands, payload["capacity"])
        self.model.minimize(sum(self.cost))

    def _events(self) -> dict[int, list[tuple[int, int]]]:
        """Operator and operand index of what touches each tensor, by step."""
        events: dict[int, list[tuple[int, int]]] = {}
        for operator in self.payload["order"]:
            for index, (tensor, *_) in enumerate(self.operands[operator]):
                events.setdefault(tensor, []).append((operator, index))
        return events

    def _positions(self) -> None:
        model, inside = self.model, set(self.moving)
        writer = {
            tensor: operator
            for operator, operands in enumerate(self.operands)
            for tensor, writes, *_ in operands
            if writes
        }
        before: dict[int, set[int]] = {}
        for operator in self.moving:
            direct = {
                writer[tensor]
                for tensor, writes, *_ in self.operands[operator]
                if not writes and writer.get(tensor) in inside
            }
            before[operator] = direct.union(*(before[other] for other in direct))
        after = {operator: sum(operator in masters for masters in before.values()) for operator in inside}
        for operator, step in self.step.items():
            low = high = step
            if operator in inside:
                low, high = self.first + len(before[operator]), self.end - 1 - after[operator]
            self.position[operator] = model.new_int_var(low, high, f"position{operator}")
            model.add_hint(self.position[operator], step)
        model.add_all_different([self.position[operator] for operator in self.moving])
        for operator in self.moving:
            for other in sorted(before[operator]):
                model.add(self.position[other] < self.position[operator])

    def _load(self, operator: int, units: int, present: Any = None) -> None:
        """Units in use in the step of an operator, always or when a literal holds."""
        begin, name = self.position[operator], f"load{len(self.intervals)}"
        if present is None:
            interval = self.model.new_fixed_size_interval_var(begin, 1, name)
        else:
            interval = self.model.new_optional_fixed_size_interval_var(begin, 1, present, name)
        self.intervals.append(interval)
        self.demands.append(units)

    def _flag(self, name: str, hint: bool) -> Any:
        flag = self.model.new_bool_var(name)
        self.model.add_hint(flag, hint)
        return flag

    def _known(self, what: str, operator: int, index: int) -> bool:
        return bool(self.payload[what][operator][index])

    def _as_known(self, tensor: int, events: list[tuple[int, int]], background: list[int]) -> None:
        """A tensor that is not decided on: its units in every step."""
        size = self.payload["size"][tensor]
        for number, (operator, index) in enumerate(events):
            step = self.step[operator]
            streamed = self._known("streamed", operator, index)
            background[step] += size - (self.operands[operator][index][2] if streamed else 0)
            if self._known("kept", operator, index):
                for between in range(step + 1, self.step[events[number + 1][0]]):
                    background[between] += size

    def _stays(self, tensor: int, events: list[tuple[int, int]]) -> None:
        """A tensor that the window touches: its stays, its streams and their cost."""
        model, payload = self.model, self.payload
        size = payload["size"][tensor]
        low, high = self._span(events)
        known = self._known_stays(events)
        written = self.operands[events[0][0]][events[0][1]][1] == 1
        uses = events[1:] if written else events
        count = min(len(known) + payload["refetches"], len(events))
        if written and self._known("streamed", *events[0]):
            known = [None, *known]
            count = min(count + 1, len(events))
        stays = []
        for number in range(count):
            hint = known[number] if number < len(known) else None
            begin = model.new_int_var(low, high, f"begin{tensor}_{number}")
            end = model.new_int_var(low, high, f"end{tensor}_{number}")
            there = self._flag(f"there{tensor}_{number}", hint is not None)
            length = model.new_int_var(1, high + 1 - low, f"length{tensor}_{number}")
            first_hint, last_hint = hint if hint is not None else (low, low)
            model.add_hint(begin, first_hint)
            model.add_hint(end, last_hint)
            model.add_hint(length, last_hint + 1 - first_hint)
            if number == 0 and written:
                model.add(begin == self.position[events[0][0]])
            self.intervals.append(
                model.new_optional_interval_var(begin, length, end + 1, there, f"stay{tensor}_{number}")
            )
            self.demands.append(size)
            stays.append((begin, end, there))
        for number in range(1, count):
            earlier, later = stays[number - 1], stays[number]
            model.add(later[0] > earlier[1]).only_enforce_if(later[2], earlier[2])
            if written:
                model.add(later[0] > self.position[events[0][0]]).only_enforce_if(later[2])
            if number > 1 or not written:
                model.add_implication(later[2], earlier[2])
        moved = [there for _, _, there in stays[written:]]
        for operator, index in uses:
            hits = []
            for number, (begin, end, there) in enumerate(stays):
                hint = known[number] if number < len(known) else None
                inside = hint is not None and hint[0] <= self.step[operator] <= hint[1]
                hit = self._flag(f"hit{operator}_{tensor}_{number}", inside)
                model.add_implication(hit, there)
                model.add(begin <= self.position[operator]).only_enforce_if(hit)
                model.add(end >= self.position[operator]).only_enforce_if(hit)
                hits.append(hit)
            if self.operands[operator][index][2]:
                hits.append(self._stream(operator, index))
                moved.append(hits[-1])
            model.add_exactly_one(hits)
        if written:
            operator, index = events[0]
            if self.operands[operator][index][2]:
                model.add(stays[0][2] + self._stream(operator, index) == 1)
            else:
                model.add(stays[0][2] == 1)
        self._price(tensor, moved, size)

    def _span(self, events: list[tuple[int, int]]) -> tuple[int, int]:
        """Give the first and the last step in which a tensor can be touched."""
        steps = [self.step[operator] for operator, _ in events]
        low = self.first if self.first <= steps[0] < self.end else steps[0]
        high = self.end - 1 if self.first <= steps[-1] < self.end else steps[-1]
        return low, high

    def _stream(self, operator: int, index: int) -> Any:
        """Give the literal that an operand is streamed, with its window's load."""
        tensor, _, saved, _ = self.operands[operator][index]
        stream = self._flag(f"stream{operator}_{index}", self._known("streamed", operator, index))
        self.streams[operator, index] = stream
        self._load(operator, self.payload["size"][tensor] - saved, stream)
        return stream

    def _price(self, tensor: int, moved: list[Any], size: int) -> None:
        model, payload = self.model, self.payload
        if payload["source"][tensor]:
            self.cost.append(size * (sum(moved) - 1))
            return
        self.cost += [size * move for move in moved]
        if payload["spills"][tensor] and moved:
            spilled = model.new_bool_var(f"spilled{tensor}")
            model.add_hint(spilled, any(self._hinted(tensor)))
            for move in moved:
                model.add_implication(move, spilled)
            self.cost.append(size * spilled)

    def _hinted(self, tensor: int) -> list[bool]:
        """Whether the residency known leaves each gap of a tensor out."""
        return [not self._known("kept", *event) for event in self.events[tensor][:-1]]

    def _known_stays(self, events: list[tuple[int, int]]) -> list[tuple[int, int] | None]:
        """Stays of the residency known: first and last step."""
        stays: list[tuple[int, int] | None] = []
        open_since = -1
        for operator, index in events:
            step = self.step[operator]
            if self._known("streamed", operator, index):
                continue
            begin = step if open_since < 0 else open_since
            open_since = begin
            if not self._known("kept", operator, index):
                stays.append((begin, step))
                open_since = -1
        return stays

    def _lone(self) -> None:
        """An operand that streams alone streams only when nothing else of its operator does."""
        for (operator, index), stream in self.streams.items():
            operands = self.operands[operator]
            for other in range(len(operands)):
                if other == index or not (operands[index][3] or operands[other][3]):
                    continue
                rival = self.streams.get((operator, other))
                if rival is not None:
                    self.model.add_implication(stream, rival.negated())
                elif self._known("streamed", operator, other):
                    self.model.add(stream == 0)
