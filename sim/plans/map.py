"""The picture of a plan: addresses over steps, and the transfers between memory and scratchpad."""

from collections import defaultdict
from collections.abc import Iterable
from html import escape
from typing import NamedTuple

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.plan.plan import Direction
from sim.plans.charts import AVOIDABLE_READ, AVOIDABLE_WRITE, listed, step_axis
from sim.plans.facts import PlanFacts, TransferReason
from sim.report.style import INK, ON_MARK, byte_axis, hover, styled

SOURCE, ACTIVATION, OUTPUT, WINDOW, BUFFER = "#8fa3d6", "#7fb8c0", "#b4c37a", "#e9c46a", "#b98aa5"
#: For each reason of a transfer: marker, its colour and name, and the colour of its bar.
_MOVES = {
    TransferReason.FIRST_FETCH: ("triangle-right-open", "#5f6caf", "first fetch", SOURCE),
    TransferReason.REFETCH: ("triangle-right", AVOIDABLE_READ, "fetched again", AVOIDABLE_READ),
    TransferReason.SPILL: ("triangle-down", AVOIDABLE_WRITE, "spilled", AVOIDABLE_WRITE),
    TransferReason.OUTPUT: ("triangle-down-open", "#5d6d1e", "output written", OUTPUT),
}
#: Least shares of the picture's width and height at which a rectangle shows its name.
_NAMED_WIDTH, _NAMED_HEIGHT = 0.045, 0.035


class _Rectangle(NamedTuple):
    """Bytes over steps, both included, with a name and a hover text in HTML."""

    first: int
    last: int
    address: int
    size_bytes: int
    name: str = ""
    text: str = ""


def address_map(facts: PlanFacts) -> go.Figure:
    """Draw the scratchpad's content by address and step, and below it the bytes moved by step."""
    plan, steps = facts.plan, len(facts.plan.steps)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.78, 0.22], vertical_spacing=0.05)
    traces = [
        _bars(facts, rectangles, name, {"color": colour, "line": {"color": "white", "width": 1}})
        for (name, colour), rectangles in _rectangles(facts).items()
    ]
    waiting = _waiting(facts)
    if waiting:
        pattern = {"shape": "/", "size": 6, "solidity": 0.25, "fgcolor": INK}
        traces.append(
            _bars(facts, waiting, "only moving", {"color": "rgba(255,255,255,0.35)", "pattern": pattern})
        )
        traces[-1].update(hoverinfo="skip", hovertemplate=None)
    moved = _moved_bars(facts)
    for row, each in ((1, [*traces, *_move_marks(facts)]), (2, moved)):
        for trace in each:
            figure.add_trace(trace, row=row, col=1)
    figure.add_hline(y=plan.scratchpad_bytes, line={"color": INK, "width": 1.5, "dash": "dot"}, row=1, col=1)
    figure = styled(figure, height=720)
    figure.update_layout(barmode="overlay", hovermode="closest", bargap=0, margin_t=64)
    top = 1.02 * plan.scratchpad_bytes
    figure.update_yaxes(**byte_axis(top), range=[0, top], title="address", row=1, col=1)
    most = max([1, *(abs(value) for trace in moved for value in trace.y)])
    figure.update_yaxes(
        **byte_axis(most, both_ways=True), title="moved", fixedrange=True, zeroline=True, row=2, col=1
    )
    figure.update_xaxes(range=[-0.5, steps - 0.5], showgrid=False)
    figure.update_xaxes(**step_axis(steps), row=2, col=1)
    return figure


def _rectangles(facts: PlanFacts) -> dict[tuple[str, str], list[_Rectangle]]:
    """Return everything in the scratchpad, by name and colour of its kind."""
    plan = facts.plan
    kinds = {TensorKind.ACTIVATION: ("activation", ACTIVATION), TensorKind.OUTPUT: ("output", OUTPUT)}
    groups: dict[tuple[str, str], list[_Rectangle]] = defaultdict(list)
    for index, e in enumerate(plan.episodes):
        kind = kinds.get(plan.graph.tensor[e.tensor].kind, ("input, weight, cache", SOURCE))
        text = _stay_text(facts, index)
        groups[kind].append(_Rectangle(e.first_step, e.last_step, e.address, e.size_bytes, e.tensor, text))
    groups = defaultdict(list, sorted(groups.items()))
    for index, s in enumerate(plan.streams):
        text = _window_text(facts, index)
        groups["stream window", WINDOW].append(
            _Rectangle(s.step, s.step, s.address, s.window_bytes, s.tensor, text)
        )
    for f in plan.fifos:
        text = f"buffers of the group in step {f.step}"
        groups["group's FIFO", BUFFER].append(
            _Rectangle(f.step, f.step, f.address, f.size_bytes, "FIFO", text)
        )
    return groups


def _bars(facts: PlanFacts, rectangles: list[_Rectangle], name: str, marker: dict[str, object]) -> go.Bar:
    wide = _NAMED_WIDTH * len(facts.plan.steps)
    high = _NAMED_HEIGHT * facts.plan.scratchpad_bytes
    return go.Bar(
        x=[(each.first + each.last) / 2 for each in rectangles],
        width=[each.last + 1 - each.first for each in rectangles],
        base=[each.address for each in rectangles],
        y=[each.size_bytes for each in rectangles],
        name=name,
        marker=marker,
        text=[
            escape(each.name) if each.last + 1 - each.first >= wide and each.size_bytes >= high else ""
            for each in rectangles
        ],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"size": 11, "color": ON_MARK},
        **hover([each.text for each in rectangles]),
    )


def _lines(*parts: str) -> str:
    return "<br>".join(part for part in parts if part)


def _place_text(address: int, size: int) -> str:
    return f"{size:,} bytes at {address:,} to {address + size:,}"


def _stay_text(facts: PlanFacts, index: int) -> str:
    episode = facts.plan.episodes[index]
    tensor = facts.plan.graph.tensor[episode.tensor]
    shape = f" {'x'.join(map(str, tensor.shape))}" if tensor.shape else ""
    read, write = (facts.moves.get((index, direction)) for direction in (Direction.READ, Direction.WRITE))
    if read is None:
        came = f"written by {escape(facts.operators[episode.first_step].name)}"
    else:
        early = facts.plan.transfers[read].deadline_step - facts.plan.transfers[read].start_step
        came = f"{facts.reasons[read].value}, " + (f"{early} steps early" if early else "not hidden")
    saved = ""
    if write is not None:
        deadline = facts.plan.transfers[write].deadline_step
        saved = f"{facts.reasons[write].value}: written to memory before step {deadline}"
    users = [facts.operators[step].name for step in facts.uses_within(episode)]
    return _lines(
        f"<b>{escape(tensor.name)}</b> ({tensor.kind.value}{shape})",
        _place_text(episode.address, episode.size_bytes),
        f"steps {episode.first_step} to {episode.last_step}",
        came,
        saved,
        f"read by {listed(users)}" if users else "",
    )


def _window_text(facts: PlanFacts, index: int) -> str:
    stream = facts.plan.streams[index]
    size = facts.plan.graph.tensor[stream.tensor].size_bytes
    verb = "read from memory by" if stream.direction is Direction.READ else "written to memory by"
    return _lines(
        f"<b>{escape(stream.tensor)}</b> through a window",
        _place_text(stream.address, stream.window_bytes),
        f"{size:,} bytes {verb} {escape(facts.operators[stream.step].name)}, step {stream.step}",
    )


def _waiting(facts: PlanFacts) -> list[_Rectangle]:
    """Return the parts of stays before the first and after the last use."""
    found = []
    for index, episode in enumerate(facts.plan.episodes):
        touched = list(facts.uses_within(episode))
        if (index, Direction.READ) not in facts.moves:
            touched.append(episode.first_step)
        spans = (episode.first_step, min(touched) - 1), (max(touched) + 1, episode.last_step)
        found += [
            _Rectangle(first, last, episode.address, episode.size_bytes)
            for first, last in spans
            if first <= last
        ]
    return found


def _move_marks(facts: PlanFacts) -> Iterable[go.Scatter]:
    plan = facts.plan
    for why, (symbol, colour, name, _) in _MOVES.items():
        moves = [each for each, reason in zip(plan.transfers, facts.reasons, strict=True) if reason is why]
        if moves:
            heights = [
                each.size_bytes if each.stream is None else plan.streams[each.stream].window_bytes
                for each in moves
            ]
            yield go.Scatter(
                x=[each.start_step + (-0.42 if each.direction is Direction.READ else 0.42) for each in moves],
                y=[each.scratchpad_address + height / 2 for each, height in zip(moves, heights, strict=True)],
                mode="markers",
                name=name,
                marker={"symbol": symbol, "color": colour, "size": 9, "line": {"width": 1.2}},
                **hover(
                    [
                        f"<b>{escape(each.tensor)}</b>: {why.value}<br>{each.size_bytes:,} bytes, "
                        f"memory address {each.dram_address:,}<br>"
                        f"may start in step {each.start_step}, complete by {each.deadline_step}"
                        for each in moves
                    ]
                ),
            )


def _moved_bars(facts: PlanFacts) -> list[go.Bar]:
    """Return bars of bytes by step: reads up, writes down, compulsory ones pale."""
    bars = []
    for sign, reasons in (
        (1, (TransferReason.FIRST_FETCH, TransferReason.REFETCH)),
        (-1, (TransferReason.OUTPUT, TransferReason.SPILL)),
    ):
        base = [0] * len(facts.plan.steps)
        for why in reasons:
            amounts = facts.bytes_by_step(why)
            shown = [step for step, amount in enumerate(amounts) if amount]
            if shown:
                bars.append(
                    go.Bar(
                        x=shown,
                        y=[sign * amounts[step] for step in shown],
                        base=[sign * base[step] for step in shown],
                        width=0.8,
                        marker={"color": _MOVES[why][3]},
                        showlegend=False,
                        customdata=[amounts[step] for step in shown],
                        hovertemplate=f"step %{{x}}<br>{why.value}: %{{customdata:,}} bytes<extra></extra>",
                    )
                )
            base = amounts
    return bars
