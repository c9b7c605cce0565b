"""Facts derived from a plan for its page: reasons of transfers, deliveries of tensors, bytes by step."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hw.scheduler.graph.graph import Operator, TensorKind
from hw.scheduler.plan.plan import Direction, Episode, Plan
from hw.scheduler.plan.problem import Problem


class TransferReason(enum.StrEnum):
    """Why a transfer is made."""

    FIRST_FETCH = "first fetch"
    REFETCH = "fetch of what was on chip before"
    SPILL = "spill"
    OUTPUT = "output"


class Delivery(enum.StrEnum):
    """The delivery of a tensor from its producer to one consumer."""

    STAYED = "stayed on chip"
    FETCHED = "through memory"
    STREAMED = "streamed from memory"


def moved_beyond(plan: Plan, problem: Problem) -> int:
    """Return the bytes beyond the network's compulsory ones: avoidable ones, and parameters read again."""
    parameters = sum(operator.weight_bytes for operator in problem.graph.operators)
    compulsory = problem.compulsory * problem.word_bytes
    extra = plan.totals.compulsory_bytes - compulsory + plan.totals.parameter_bytes - parameters
    return plan.totals.avoidable_bytes + extra


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Traffic of a plan for one scratchpad, and of other methods, all as `moved_beyond` counts."""

    scratchpad_bytes: int
    avoidable_bytes: int
    bound_avoidable_bytes: int = 0  #: Lower bound of all plans.
    claim: str = ""  #: The certificate's.
    baselines: Mapping[str, int] = field(default_factory=dict)  #: Avoidable bytes of other methods, by name.

    @classmethod
    def of(cls, plan: Plan, problem: Problem, baselines: Mapping[str, int] | None = None) -> CurvePoint:
        """Return the point of a network's plan; its bound holds only where the network has no bands."""
        cut = len(plan.graph.tensors) > len(problem.graph.tensors)
        return cls(
            scratchpad_bytes=plan.scratchpad_bytes,
            avoidable_bytes=moved_beyond(plan, problem),
            bound_avoidable_bytes=0 if cut else plan.certificate.bound_avoidable_bytes,
            claim=plan.certificate.claim,
            baselines=baselines or {},
        )


@dataclass(frozen=True, kw_only=True)
class Edge:
    """One use of a tensor that an operator produced."""

    tensor: str
    made: int
    used: int
    delivery: Delivery


@dataclass(frozen=True)
class PlanFacts:
    """A plan with derived facts."""

    plan: Plan  #: One that `hw.scheduler.check.check` finds no problem in.

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        """The operator of each step."""
        by_name = {operator.name: operator for operator in self.plan.graph.operators}
        return tuple(by_name[step.operator] for step in self.plan.steps)

    @cached_property
    def made_at(self) -> dict[str, int]:
        """Step that writes each tensor; sources have none."""
        return {name: step for step, operator in enumerate(self.operators) for name in operator.outputs}

    @cached_property
    def used_at(self) -> dict[str, tuple[int, ...]]:
        """Steps that read each tensor."""
        found: dict[str, list[int]] = {tensor.name: [] for tensor in self.plan.graph.tensors}
        for step, operator in enumerate(self.operators):
            for name in operator.inputs:
                found[name].append(step)
        return {name: tuple(steps) for name, steps in found.items()}

    @cached_property
    def reasons(self) -> tuple[TransferReason, ...]:
        """Why each transfer is made."""
        seen: set[str] = set()
        found = []
        for transfer in self.plan.transfers:
            tensor = self.plan.graph.tensor[transfer.tensor]
            if transfer.direction is Direction.WRITE:
                found.append(
                    TransferReason.OUTPUT if tensor.kind is TensorKind.OUTPUT else TransferReason.SPILL
                )
                continue
            first = tensor.off_chip_first and tensor.name not in seen
            found.append(TransferReason.FIRST_FETCH if first else TransferReason.REFETCH)
            seen.add(tensor.name)
        return tuple(found)

    @cached_property
    def moves(self) -> dict[tuple[int, Direction], int]:
        """Transfer that fills or saves an episode, by the episode's index and the direction."""
        return {
            (transfer.episode, transfer.direction): index
            for index, transfer in enumerate(self.plan.transfers)
            if transfer.episode is not None
        }

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every use of a tensor that an operator produced."""
        streamed = {
            (stream.tensor, stream.step) for stream in self.plan.streams if stream.direction is Direction.READ
        }
        kept = {
            episode.tensor: episode.last_step
            for episode in self.plan.episodes
            if episode.first_step == self.made_at.get(episode.tensor)
        }

        def delivery_of(tensor: str, used: int) -> Delivery:
            if (tensor, used) in streamed:
                return Delivery.STREAMED
            return Delivery.STAYED if used <= kept.get(tensor, -1) else Delivery.FETCHED

        return tuple(
            Edge(tensor=tensor, made=made, used=used, delivery=delivery_of(tensor, used))
            for tensor, made in self.made_at.items()
            for used in self.used_at[tensor]
        )

    def bytes_by_step(self, why: TransferReason) -> list[int]:
        """Bytes moved for a reason, by start step."""
        total: Counter[int] = Counter()
        for transfer, reason in zip(self.plan.transfers, self.reasons, strict=True):
            if reason is why:
                total[transfer.start_step] += transfer.size_bytes
        return [total[step] for step in range(len(self.plan.steps))]

    def uses_within(self, episode: Episode) -> tuple[int, ...]:
        """Steps that read a tensor during an episode."""
        return tuple(
            step for step in self.used_at[episode.tensor] if episode.first_step <= step <= episode.last_step
        )

    @cached_property
    def bytes_in_use(self) -> list[int]:
        """Bytes of the scratchpad in use in each step."""
        plan = self.plan
        spans = [(each.first_step, each.last_step, each.size_bytes) for each in plan.episodes]
        spans += [(each.step, each.step, each.window_bytes) for each in plan.streams]
        spans += [(each.step, each.step, each.size_bytes) for each in plan.fifos]
        used = [0] * len(plan.steps)
        for first, last, size in spans:
            for step in range(first, last + 1):
                used[step] += size
        return used

    @cached_property
    def early_fetches(self) -> int:
        """Reads of whole tensors that may start before the step that needs them."""
        return sum(
            transfer.start_step < transfer.deadline_step
            for transfer in self.plan.transfers
            if transfer.direction is Direction.READ and transfer.stream is None
        )
