"""The planner: a plan of a graph for a scratchpad, by the stages that `hw.scheduler` draws."""

import enum
from dataclasses import dataclass, fields, replace

from hw.board import Board
from hw.errors import InputError
from hw.scheduler.graph.graph import Graph
from hw.scheduler.plan.array import compute_cycles
from hw.scheduler.plan.diagnose import diagnose, refuse
from hw.scheduler.plan.options import PlanOptions, Techniques, When
from hw.scheduler.plan.plan import Certificate, Direction, Mode, Plan, PlanStep, StageCertificate, Totals
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.bands.tile import tile
from hw.scheduler.planner.groups.pipeline import improve, weigh
from hw.scheduler.planner.order.ordering import Ordering, find_orders, prove
from hw.scheduler.planner.placing import Placed, place_residency
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.transfers.transfers import Movements, least_step_cycles, make_transfers
from hw.scheduler.planner.watch import STOPPED, current
from hw.scheduler.program.lower import lower
from hw.scheduler.program.program import MAX_CORES
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.timeline import predict

#: Largest graph with groups that is bounded: beyond it a bound takes minutes.
_BOUNDED_OPERATORS = 200

#: The planner's stages, as shown while it runs.
_STAGES = ("whole operators", "cutting into bands", "bands", "transfers and cycles")

#: Bands are left out if their estimate exceeds the best draft by this factor: ordering them saves at most a
#: quarter of the estimate.
_HOPELESS = 4 / 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Draft:
    """A plan before its transfers: one graph's order, residency and addresses."""

    problem: Problem
    ordering: Ordering
    placed: Placed

    @property
    def words(self) -> int:
        """Words that pass the memory's port, parameters too."""
        return self.placed.residency.avoidable_words + _needed_words(self.problem)


def _needed_words(problem: Problem) -> int:
    """Return the words that pass the memory's port in every residency.

    They depend on the bands: each is rounded up to words and reads its operator's parameters again.
    """
    return problem.compulsory + sum(problem.words(each.weight_bytes) for each in problem.graph.operators)


def make_plan(graph: Graph, options: PlanOptions, *, board: Board | None = None) -> Plan:
    """Plan a graph for a scratchpad; `hw.scheduler.plan_model.plan_model` also loads and fuses it.

    The predicted cycles are for the board's memory, by default the U55C's.  The current watch
    (`hw.scheduler.planner.watch`) shows progress and may end the search.  Raises `InputError` when no plan is
    possible, with the smallest set of tensors that do not fit together and a sufficient scratchpad.
    """
    if options.cores > MAX_CORES:
        raise InputError("cores", options.cores, f"from 1 to {MAX_CORES}")
    problem = Problem(graph=graph, word_bytes=options.word_bytes)
    timing = TimingModel.of(board, word_bytes=options.word_bytes) if board else TimingModel()
    watch = current()
    watch.reserve(problem.operator_count)
    with Worker() as worker:
        planner = _Planner(options, timing, worker)
        drafts: list[Draft] = []
        planner.stage(0)
        if options.tiling is not When.ALWAYS and diagnose(problem, options) is None:
            drafts += planner.drafts(graph)
        enough = any(draft.placed.residency.avoidable_words == 0 for draft in drafts)
        if options.tiling is When.ALWAYS or (options.tiling is When.AUTO and not enough):
            planner.stage(1)
            tiled = tile(graph, options, needed=not drafts)
            if tiled is not None and (not drafts or planner.promises(tiled, drafts)):
                watch.reserve(problem.operator_count + len(tiled.operators))
                planner.stage(2)
                drafts += planner.drafts(tiled, thorough=False)
        if not drafts:
            refuse(problem, options)
        return planner.best_of(drafts)


class _Planner:
    """The stages, with their common options, timing and solver process."""

    def __init__(self, options: PlanOptions, timing: TimingModel, worker: Worker) -> None:
        self._options, self._timing, self._worker, self._watch = options, timing, worker, current()
        self._finished: dict[Draft, Plan] = {}
        self._latency_cycles = round(timing.read_request_cycles + timing.read_response_cycles)

    def stage(self, number: int) -> None:
        """Show the stage that begins."""
        self._stage = f"stage {number + 1} of {len(_STAGES)}, {_STAGES[number]}"
        self._watch.stage(self._stage)

    def _part(self, text: str) -> None:
        self._watch.stage(f"{self._stage}: {text}")

    def drafts(self, graph: Graph, *, thorough: bool = True) -> list[Draft]:
        """Draft a plan of a graph, and one with pipelined groups if some pay."""
        plain = self._draft(graph, thorough)
        if self._options.pipelining is When.NEVER or self._watch.stopped:
            return [plain]
        ordered = replace(graph, operators=tuple(graph.operators[each] for each in plain.ordering.order))
        grouped = self._grouped(ordered)
        if len(grouped.operators) == len(ordered.operators):
            return [plain]
        problem = Problem(graph=grouped, word_bytes=self._options.word_bytes)
        # Groups change the cost of an order: bounds of the plain graph do not hold for them.
        order = tuple(range(problem.operator_count))
        return [plain, self._settle(problem, replace(plain.ordering, order=order, bound_words=0))]

    def promises(self, tiled: Graph, drafts: list[Draft]) -> bool:
        """Estimate whether a graph in bands may become a better plan than the drafts."""
        problem = Problem(graph=tiled, word_bytes=self._options.word_bytes)
        latency, needed = self._options.objective[0] == "latency", _needed_words(problem)
        least = min(draft.words for draft in drafts)
        if self._watch.stopped or (not latency and needed >= least):
            return False
        if self._options.pipelining is not When.NEVER:
            tiled = self._grouped(tiled)
        estimate = weigh(tiled, self._options, self._latency_cycles)
        if estimate is None:
            return True
        if latency:
            known = min(self.finish(draft).totals.predicted_cycles for draft in drafts)
            return estimate[1] < _HOPELESS * known
        return estimate[0] + needed < _HOPELESS * least

    def _draft(self, graph: Graph, thorough: bool) -> Draft:
        """Choose order, residency and addresses for a graph; see `find_orders` for ``thorough``."""
        problem = Problem(graph=graph, word_bytes=self._options.word_bytes)
        self._part(f"order of {problem.operator_count} operators")
        first, *others = find_orders(problem, self._options, thorough=thorough)
        best = self._settle(problem, first)
        for ordering in others:
            if best.placed.residency.avoidable_words > ordering.bound_words and not self._watch.stopped:
                best = min(best, self._settle(problem, ordering), key=lambda draft: draft.words)
        return best

    def _settle(self, problem: Problem, ordering: Ordering, criteria: tuple[str, ...] | None = None) -> Draft:
        self._part("residency and addresses")
        options = self._options
        placed = place_residency(
            problem,
            ordering.order,
            options.capacity,
            streaming=options.streams,
            time_limit_s=options.time_limit_s,
            minimise=criteria or options.residency_criteria,
            techniques=options.techniques,
            worker=self._worker,
        )
        word = problem.word_bytes
        self._watch.best(placed.residency.avoidable_words * word, ordering.bound_words * word)
        return Draft(problem=problem, ordering=ordering, placed=placed)

    def best_of(self, drafts: list[Draft]) -> Plan:
        """Return the best plan by the objective.

        Only a finished plan has predicted cycles, so all drafts are finished unless bytes come first.
        """
        variants = drafts
        if self._options.objective[0] == "bytes":
            least = min(draft.words for draft in drafts)
            variants = [draft for draft in drafts if draft.words == least]
        self.stage(3)
        plans = [(self.finish(draft), draft) for draft in variants]
        plan, draft = min(plans, key=self._weight)
        every = tuple(criterion for criterion in self._options.objective if criterion != "latency")
        if every != self._options.residency_criteria and not self._watch.stopped:
            # A low peak or few transfers may help after all: a low peak leaves room for early fetches.
            again = self._settle(draft.problem, draft.ordering, every)
            plans = [(plan, draft), (self.finish(again), again)]
            plan, draft = min(plans, key=self._weight)
        return replace(plan, certificate=certify(self._bounded(draft)))

    def _weight(self, made: tuple[Plan, Draft]) -> tuple[int, ...]:
        """Return a plan's words and cycles in the order of the objective; residencies compare the rest."""
        plan, draft = made
        weight = (draft.words, plan.totals.predicted_cycles)
        return weight[::-1] if self._options.objective[0] == "latency" else weight

    def _grouped(self, graph: Graph) -> Graph:
        """Join neighbours into pipelined groups where that pays in the graph's listed order."""
        self._part(f"groups, trials with {len(graph.operators)} operators")
        return improve(
            graph, self._options, latency_cycles=self._latency_cycles, most_members=self._options.cores
        )

    def _bounded(self, draft: Draft) -> Draft:
        """Add a bound of its own to a draft with groups."""
        words = draft.placed.residency.avoidable_words
        grouped = any(operator.members for operator in draft.problem.graph.operators)
        if not (grouped and words) or draft.problem.operator_count > _BOUNDED_OPERATORS:
            return draft
        self._part("bound of the groups")
        stage = prove(draft.problem, self._options, words)
        ordering = replace(
            draft.ordering,
            bound_words=stage.bound // draft.problem.word_bytes,
            stages=(*draft.ordering.stages, stage),
        )
        return replace(draft, ordering=ordering)

    def finish(self, draft: Draft) -> Plan:
        """Decide transfers, count bytes and cycles, and certify the plan."""
        if draft not in self._finished:
            self._finished[draft] = self._made_whole(draft)
        return self._finished[draft]

    def _made_whole(self, draft: Draft) -> Plan:
        self._part("transfers")
        problem, order, residency = draft.problem, draft.ordering.order, draft.placed.residency
        cycles = least_step_cycles(problem, order, self._options.macs_per_cycle)
        hides = self._options.techniques.hidden_transfers and "latency" in self._options.objective
        movements = make_transfers(
            problem,
            order,
            residency,
            draft.placed.placement.addresses,
            step_cycles=cycles if hides else None,
            latency_cycles=self._latency_cycles,
        )
        plan = Plan(
            graph=problem.graph,
            scratchpad_bytes=self._options.scratchpad_bytes,
            word_bytes=problem.word_bytes,
            steps=tuple(
                PlanStep(
                    operator=operator.name,
                    mode=Mode.PIPELINED if operator.members else Mode.SEQUENTIAL,
                    compute_cycles=compute_cycles(operator, self._options.macs_per_cycle),
                )
                for operator in (problem.graph.operators[index] for index in order)
            ),
            **movements._asdict(),
            totals=_totals(draft, movements),
            certificate=certify(draft),
            options=_plain(self._options),
        )
        self._part("cycles")
        played = predict(lower(plan), self._timing)
        totals = replace(
            plan.totals, predicted_cycles=played.cycles_total, exposed_cycles=played.exposed_cycles
        )
        return replace(plan, totals=totals)


def _totals(draft: Draft, movements: Movements) -> Totals:
    """Count bytes and transfers; cycles are predicted once the plan is whole."""
    moved = {
        direction: sum(t.size_bytes for t in movements.transfers if t.direction is direction)
        for direction in Direction
    }
    word = draft.problem.word_bytes
    return Totals(
        offchip_read_bytes=moved[Direction.READ],
        offchip_write_bytes=moved[Direction.WRITE],
        compulsory_bytes=draft.problem.compulsory * word,
        avoidable_bytes=sum(moved.values()) - draft.problem.compulsory * word,
        parameter_bytes=sum(operator.weight_bytes for operator in draft.problem.graph.operators),
        peak_bytes=draft.placed.residency.peak_words * word,
        transfers_total=len(movements.transfers),
        predicted_cycles=0,
        exposed_cycles=0,
    )


def certify(draft: Draft) -> Certificate:
    """Combine the proofs of a draft's stages."""
    word = draft.problem.word_bytes
    residency, ordering = draft.placed.residency, draft.ordering
    moved, bound = residency.avoidable_words * word, ordering.bound_words * word
    of_order = max(residency.bound_words * word, bound)
    if moved == bound:
        claim = "optimal"
    elif moved == of_order:
        claim = "optimal for this order"
    else:
        claim = f"bound {bound} bytes, not proven"
    placement = draft.placed.placement
    decided = StageCertificate(
        stage="residency",
        solver=residency.solver,
        status=residency.status,
        objective=moved,
        bound=of_order,
        note=residency.note,
    )
    packed = StageCertificate(
        stage="address",
        solver=placement.solver,
        status="optimal" if placement.height == placement.live else "feasible",
        objective=placement.height * word,
        bound=placement.live * word,
        note=placement.note,
    )
    stages = (*ordering.stages, decided, packed)
    if current().stopped:
        note = "stopped before its end: may differ from run to run"
        stages += (
            StageCertificate(
                stage="search", solver="planner", status=STOPPED, objective=moved, bound=bound, note=note
            ),
        )
    return Certificate(
        claim=claim, bound_avoidable_bytes=bound, order_bound_avoidable_bytes=of_order, stages=stages
    )


def _plain(options: PlanOptions) -> dict[str, str | int | float | bool | None]:
    """Return the options as a plan records them."""
    plain = {each.name: getattr(options, each.name) for each in fields(options) if each.name != "techniques"}
    plain |= {name: value.value for name, value in plain.items() if isinstance(value, enum.Enum)}
    plain["objective"] = ",".join(options.objective)
    switched_off = [name for name in Techniques.names() if not getattr(options.techniques, name)]
    return plain | ({"without": ",".join(switched_off)} if switched_off else {})
