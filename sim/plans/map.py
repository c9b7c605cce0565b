"""The picture of a plan: addresses over time, and what moves between memory and scratchpad."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.plan.plan import Direction, Episode
from sim.plans.axis import AVOIDABLE_READ, AVOIDABLE_WRITE, listed, step_axis
from sim.plans.facts import PlanFacts, Why
from sim.report.style import INK, byte_axis, hover, styled

SOURCE, ACTIVATION, OUTPUT, WINDOW, BUFFER = "#8fa3d6", "#7fb8c0", "#b4c37a", "#e9c46a", "#b98aa5"
_MARKS = {
    Why.FIRST_FETCH: ("triangle-right-open", "#5f6caf", "first fetch"),
    Why.REFETCH: ("triangle-right", AVOIDABLE_READ, "fetched again"),
    Why.SPILL: ("triangle-down", AVOIDABLE_WRITE, "spilled"),
    Why.OUTPUT: ("triangle-down-open", "#5d6d1e", "output written"),
}
#: A rectangle's name is drawn when it takes these shares of the picture.
_NAMED_WIDTH, _NAMED_HEIGHT = 0.045, 0.035


def address_map(facts: PlanFacts) -> go.Figure:
    """Draw who lies where when, and below it what moves between memory and scratchpad."""
    plan = facts.plan
    steps = len(plan.steps)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.78, 0.22], vertical_spacing=0.05)
    colours = {TensorKind.ACTIVATION: ("activation", ACTIVATION), TensorKind.OUTPUT: ("output", OUTPUT)}
    groups: dict[tuple[str, str], list[tuple[int, Episode]]] = defaultdict(list)
    for index, episode in enumerate(plan.episodes):
        kind = plan.graph.tensor[episode.tensor].kind
        groups[colours.get(kind, ("input, weight, cache", SOURCE))].append((index, episode))
    for (name, colour), episodes in sorted(groups.items()):
        figure.add_trace(
            _rectangles(
                [
                    (e.first_step, e.last_step, e.address, e.size_bytes, e.tensor, _stay_text(facts, index))
                    for index, e in episodes
                ],
                name,
                colour,
                steps,
                plan.scratchpad_bytes,
            ),
            row=1,
            col=1,
        )
    windows = [
        (s.step, s.step, s.address, s.window_bytes, s.tensor, _window_text(facts, index))
        for index, s in enumerate(plan.streams)
    ]
    buffers = [
        (f.step, f.step, f.address, f.size_bytes, "FIFO", f"buffers of the group in step {f.step}")
        for f in plan.fifos
    ]
    for rectangles, name, colour in ((windows, "stream window", WINDOW), (buffers, "group's FIFO", BUFFER)):
        if rectangles:
            figure.add_trace(
                _rectangles(rectangles, name, colour, steps, plan.scratchpad_bytes), row=1, col=1
            )
    waiting = _waiting(facts)
    if waiting:
        figure.add_trace(_hatching(waiting), row=1, col=1)
    for trace in _move_marks(facts):
        figure.add_trace(trace, row=1, col=1)
    figure.add_hline(y=plan.scratchpad_bytes, line={"color": INK, "width": 1.5, "dash": "dot"}, row=1, col=1)
    for trace in _moved_bars(facts):
        figure.add_trace(trace, row=2, col=1)
    figure.update_layout(barmode="overlay", hovermode="closest", bargap=0)
    figure = styled(figure, height=720)
    figure.update_layout(bargap=0, margin_t=64)
    top = 1.02 * plan.scratchpad_bytes
    figure.update_yaxes(**byte_axis(top), range=[0, top], title="address", row=1, col=1)
    most = max([1, *(abs(value) for trace in _moved_bars(facts) for value in trace.y)])
    figure.update_yaxes(
        **byte_axis(most, both_ways=True), title="moved", fixedrange=True, zeroline=True, row=2, col=1
    )
    figure.update_xaxes(range=[-0.5, steps - 0.5], showgrid=False)
    figure.update_xaxes(**step_axis(steps), row=2, col=1)
    return figure


_Rectangle = tuple[int, int, int, int, str, str]


def _rectangles(
    rectangles: Sequence[_Rectangle], name: str, colour: str, steps: int, capacity: int
) -> go.Bar:
    texts = [
        escape(label)
        if (last + 1 - first) >= _NAMED_WIDTH * steps and size >= _NAMED_HEIGHT * capacity
        else ""
        for first, last, _, size, label, _ in rectangles
    ]
    return go.Bar(
        **_places([rectangle[:4] for rectangle in rectangles]),
        name=name,
        marker={"color": colour, "line": {"color": "white", "width": 1}},
        text=texts,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"size": 11, "color": INK},
        **hover([text for *_, text in rectangles]),
    )


def _places(parts: Sequence[tuple[int, int, int, int]]) -> dict[str, list[float]]:
    """Give the bars of first and last steps, addresses and sizes."""
    return {
        "x": [(first + last) / 2 for first, last, _, _ in parts],
        "width": [last + 1 - first for first, last, _, _ in parts],
        "base": [address for _, _, address, _ in parts],
        "y": [size for _, _, _, size in parts],
    }


def _place_text(address: int, size: int) -> str:
    return f"{size:,} bytes at {address:,} to {address + size:,}"


def _stay_text(facts: PlanFacts, index: int) -> str:
    episode = facts.plan.episodes[index]
    tensor = facts.plan.graph.tensor[episode.tensor]
    shape = f" {'x'.join(map(str, tensor.shape))}" if tensor.shape else ""
    parts = [
        f"<b>{escape(tensor.name)}</b> ({tensor.kind.value}{shape})",
        _place_text(episode.address, episode.size_bytes),
        f"steps {episode.first_step} to {episode.last_step}",
    ]
    read = facts.moves.get((index, Direction.READ))
    write = facts.moves.get((index, Direction.WRITE))
    if read is None:
        parts.append(f"written by {escape(facts.operators[episode.first_step].name)}")
    else:
        transfer = facts.plan.transfers[read]
        early = transfer.deadline_step - transfer.start_step
        parts.append(f"{facts.reasons[read].value}, " + (f"{early} steps early" if early else "not hidden"))
    if write is not None:
        deadline = facts.plan.transfers[write].deadline_step
        parts.append(f"{facts.reasons[write].value}: written to memory before step {deadline}")
    users = [facts.operators[step].name for step in facts.uses_within(episode)]
    if users:
        parts.append(f"read by {listed(users)}")
    return "<br>".join(parts)


def _window_text(facts: PlanFacts, index: int) -> str:
    stream = facts.plan.streams[index]
    tensor = facts.plan.graph.tensor[stream.tensor]
    verb = "read from memory by" if stream.direction is Direction.READ else "written to memory by"
    operator = escape(facts.operators[stream.step].name)
    return "<br>".join(
        [
            f"<b>{escape(tensor.name)}</b> through a window",
            _place_text(stream.address, stream.window_bytes),
            f"{tensor.size_bytes:,} bytes {verb} {operator}, step {stream.step}",
        ]
    )


def _waiting(facts: PlanFacts) -> list[tuple[int, int, int, int]]:
    """Give the parts of stays, as first and last step, address and size, without a use before or after."""
    found = []
    for index, episode in enumerate(facts.plan.episodes):
        touched = list(facts.uses_within(episode))
        if (index, Direction.READ) not in facts.moves:
            touched.append(episode.first_step)
        for first, last in (
            (episode.first_step, min(touched) - 1),
            (max(touched) + 1, episode.last_step),
        ):
            if first <= last:
                found.append((first, last, episode.address, episode.size_bytes))
    return found


def _hatching(parts: Sequence[tuple[int, int, int, int]]) -> go.Bar:
    return go.Bar(
        **_places(parts),
        name="only moving",
        marker={
            "color": "rgba(255,255,255,0.35)",
            "pattern": {"shape": "/", "size": 6, "solidity": 0.25, "fgcolor": INK},
        },
        hoverinfo="skip",
    )


def _move_marks(facts: PlanFacts) -> list[go.Scatter]:
    traces = []
    for why, (symbol, colour, name) in _MARKS.items():
        x, y, texts = [], [], []
        for transfer, reason in zip(facts.plan.transfers, facts.reasons, strict=True):
            if reason is not why:
                continue
            if transfer.stream is not None:
                height = facts.plan.streams[transfer.stream].window_bytes
            else:
                height = transfer.size_bytes
            reads = transfer.direction is Direction.READ
            x.append(transfer.start_step + (-0.42 if reads else 0.42))
            y.append(transfer.scratchpad_address + height / 2)
            texts.append(
                f"<b>{escape(transfer.tensor)}</b>: {why.value}<br>{transfer.size_bytes:,} bytes, "
                f"memory address {transfer.dram_address:,}<br>"
                f"may start in step {transfer.start_step}, complete by {transfer.deadline_step}"
            )
        if x:
            traces.append(
                go.Scatter(
                    x=x,
                    y=y,
                    mode="markers",
                    name=name,
                    marker={"symbol": symbol, "color": colour, "size": 9, "line": {"width": 1.2}},
                    **hover(texts),
                )
            )
    return traces


def _moved_bars(facts: PlanFacts) -> list[go.Bar]:
    """Give bars of bytes by step: reads upwards, writes downwards, compulsory ones pale."""
    reads = (Why.FIRST_FETCH, Why.REFETCH)
    colours = {
        Why.FIRST_FETCH: SOURCE,
        Why.REFETCH: AVOIDABLE_READ,
        Why.SPILL: AVOIDABLE_WRITE,
        Why.OUTPUT: OUTPUT,
    }
    bars = []
    for lower, upper in (reads, (Why.OUTPUT, Why.SPILL)):
        sign = 1 if lower in reads else -1
        base = [sign * value for value in facts.bytes_by_step(lower)]
        for why, start in ((lower, [0] * len(base)), (upper, base)):
            amounts = facts.bytes_by_step(why)
            if not any(amounts):
                continue
            shown = [step for step, amount in enumerate(amounts) if amount]
            bars.append(
                go.Bar(
                    x=shown,
                    y=[sign * amounts[step] for step in shown],
                    base=[start[step] for step in shown],
                    width=0.8,
                    marker={"color": colours[why]},
                    showlegend=False,
                    customdata=[amounts[step] for step in shown],
                    hovertemplate=f"step %{{x}}<br>{why.value}: %{{customdata:,}} bytes<extra></extra>",
                )
            )
    return bars
