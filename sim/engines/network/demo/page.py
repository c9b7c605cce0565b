"""The self-contained HTML page of sentences on the kernel: similarities, cycles, overlap, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from hw.board import Board
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.kernel.signals import signals
from hw.network.model.image import image_size
from hw.network.program.program import NetworkProgram
from hw.scheduler.plan.plan import Totals
from sim.engines.network.demo import encoder
from sim.engines.network.demo.activity import Activity, activity_of, joined
from sim.engines.network.demo.encoder import Pair
from sim.engines.network.demo.gantt import CORES, gantt, part_of
from sim.engines.network.demo.photograph import compiled
from sim.engines.network.demo.roles import Part, Role, parts_of
from sim.report.parts import Headline, chart, exact_tile, write_page
from sim.report.report import Report
from sim.report.style import FAINT, RUNS, hover, styled
from sim.report.text import MISSING, percent, signed_percent, whole
from sim.run.result import RunResult
from sim.run.signals import read_signals

#: Pairs of sentences that the page begins with, and the layer that is drawn alone.
_FIRST, _LAYER = 8, 2
_PAIR_COLUMNS = ("rank", "float's", "similarity", "float's", "sentences")
_BYTE_COLUMNS = ("", "the plan", "program, numbers", "measured")


def write_sentences(done: RunResult, config: NetworkConfig, board: Board, path: Path) -> None:
    """Write the page of a launch whose signals were logged.

    Raises `InputError` when the path cannot be written.
    """
    network, program, report = done.job.network, done.job.program, done.report
    assert done.signals is not None
    log = read_signals(done.signals, [*signals(config)])
    activity = activity_of(log, program, report.cycles.cycles_total)
    parts, load_cycles = parts_of(network), report.cycles.cycles_stall["load"]
    ranked = encoder.pairs(encoder.vectors(done), encoder.exact_vectors())
    plan = compiled(encoder.network, config).plan
    layers = sorted({each.layer for each in parts.values()} - {0})
    write_page(
        "sentences.html.j2",
        path,
        board=board.title,
        name=network.name,
        count=len(encoder.texts()),
        tiles=_tiles(done, board, activity, ranked),
        pair_columns=_PAIR_COLUMNS,
        pairs=[_pair_cells(pair) for pair in ranked],
        first=_FIRST,
        launch=chart(gantt(activity, parts, load_cycles=load_cycles), "launch", zoom=True),
        layer=_LAYER,
        layer_chart=chart(gantt(activity, parts, load_cycles=load_cycles, layer=_LAYER), "layer", zoom=True),
        shares=_shares(activity),
        role_columns=("operator", "unit", *(f"layer {layer}" for layer in layers), "at work", "in its unit"),
        roles=_role_cells(activity, parts, layers),
        operator_columns=("operator", "role", "layer", "unit", "first cycle", "at work", "in its unit"),
        operators=_operator_cells(activity, parts),
        similarities=chart(similarities(ranked), "similarities"),
        byte_columns=_BYTE_COLUMNS,
        moved=_byte_cells(report, plan.totals, program, image_size(program, lanes=config.lanes).bytes),
    )


def _tiles(done: RunResult, board: Board, activity: Activity, ranked: Sequence[Pair]) -> list[Headline]:
    report, lengths = done.report, encoder.lengths()
    cycles, rate = activity.cycles, board.clock_mhz * 1e6 / activity.cycles
    error = signed_percent(report.prediction.predicted_cycles_error_ratio)
    same = sum(pair.rank == pair.exact_rank for pair in ranked)
    difference = encoder.largest_difference(ranked)
    together = sum(activity.at_once[2:]) / cycles
    slots = percent(report.work.mac_utilization_ratio, places=1)
    return [
        exact_tile([done.bit_exact]),
        Headline("Cycles, measured", whole(cycles), f"the prediction is {error} off"),
        Headline(
            "Tokens a second",
            whole(round(sum(lengths) * rate)),
            f"{len(lengths) * rate:,.0f} sentences at {board.clock_mhz:g} MHz",
        ),
        Headline(
            "Pairs at float's rank", f"{same} of {len(ranked)}", f"similarities within {difference:.3f}"
        ),
        Headline("Multipliers useful", slots, "of the array's slots, start to done"),
        Headline("Units that overlap", percent(together, places=1), "of all cycles have two or more at work"),
    ]


def _pair_cells(pair: Pair) -> list[object]:
    return [pair.rank, pair.exact_rank, f"{pair.found:.3f}", f"{pair.exact:.3f}", " / ".join(pair.texts)]


def _shares(activity: Activity) -> list[tuple[str, str]]:
    """Return how much of the launch each unit works, and how much of it several do."""
    own = [(f"{CORES[core]} at work", percent(activity.share(core), places=1)) for core in activity.working]
    counts = ("no unit at work", "one alone", "two at once", "three at once")
    together = [
        (name, percent(cycles / activity.cycles, places=1))
        for name, cycles in zip(counts, activity.at_once, strict=False)
    ]
    return [*own, *together]


def _role_cells(activity: Activity, parts: Mapping[str, Part], layers: Sequence[int]) -> list[list[str]]:
    """Return a line for each role: cycles in which its unit works, by layer, and those in its unit."""
    rows = []
    for role in Role:
        own = [each for each in activity.commands if part_of(parts, each).role is role]
        if not own:
            continue
        cycles = [
            sum(each.working for each in own if part_of(parts, each).layer == layer) for layer in layers
        ]
        units = ", ".join(CORES[core] for core in sorted({each.core for each in own}))
        rows.append(
            [
                role.value,
                units,
                *(whole(count) if count else MISSING for count in cycles),
                whole(sum(each.working for each in own)),
                whole(sum(each.cycles for each in own)),
            ]
        )
    return rows


def _operator_cells(activity: Activity, parts: Mapping[str, Part]) -> list[list[str]]:
    """Return a line for each operator, in order of its first cycle."""
    found = joined(activity.commands)
    rows = []
    for each in sorted(found, key=lambda command: command.begin):
        part = part_of(parts, each)
        rows.append(
            [
                each.operator,
                part.role.value,
                str(part.layer) if part.layer else MISSING,
                CORES[each.core],
                whole(each.begin),
                whole(each.working),
                whole(each.cycles),
            ]
        )
    return rows


def similarities(ranked: Sequence[Pair]) -> go.Figure:
    """Draw the similarity of each pair beside the float model's."""
    figure = go.Figure()
    ends = [min(pair.exact for pair in ranked) - 0.05, max(pair.exact for pair in ranked) + 0.05]
    figure.add_scatter(x=ends, y=ends, mode="lines", name="equal", line={"color": FAINT}, hoverinfo="skip")
    figure.add_scatter(
        x=[pair.exact for pair in ranked],
        y=[pair.found for pair in ranked],
        mode="markers",
        name="a pair of sentences",
        marker={"color": RUNS[0], "size": 9},
        **hover(
            [
                f"{pair.found:.3f}, float {pair.exact:.3f}<br>{'<br>'.join(map(escape, pair.texts))}"
                for pair in ranked
            ]
        ),
    )
    figure.update_xaxes(title="similarity by the float model", range=ends)
    figure.update_yaxes(title="similarity by the RTL", range=ends)
    return styled(figure, height=380)


def _byte_cells(report: Report, plan: Totals, program: NetworkProgram, image: int) -> list[list[str]]:
    """Return planned and measured bytes; ``image``: of the program, which the plan does not have."""
    memory, *weights = report.traffic.ports
    numbers = WORD_BYTES * sum(each.moved_words - each.words for each in program.reads)
    streamed = sum(port.useful_read_bytes for port in weights)
    rows: dict[str, tuple[int, ...]] = {
        "weights read": (plan.parameter_bytes, 0, streamed),
        "tensors read": (plan.offchip_read_bytes, image + numbers, memory.useful_read_bytes),
        "tensors written": (plan.offchip_write_bytes, 0, memory.useful_write_bytes),
    }
    rows["in all"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    return [[name, *map(whole, counts)] for name, counts in rows.items()]
