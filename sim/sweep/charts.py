"""The figures of a sweep's page, each drawn from its results alone."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go

from hw.board import load_board
from sim.report.style import BUSY, FAINT, IDLE, INK, RUNS, log_axis, menu, styled
from sim.sweep.figures import pareto_front
from sim.sweep.marks import TITLES, axes, describe, main_workloads, marks, values_of_axis
from sim.sweep.points import PointResult, Value
from sim.sweep.results import SweepResults, compared, worst_prediction
from sim.sweep.rows import short_names
from sim.sweep.space import BOARD

PREDICTED, SIMULATED = "#a9d0d6", "#2a7f8e"
#: From best to worst.
_SCALE = ((0.0, "#2a7f8e"), (0.25, "#a9d0d6"), (0.6, "#f3dfc9"), (1.0, "#c8504b"))
#: Of the longest and the shortest simulation: above it an axis has only decades.
_SPAN = 100
_MOST_MENU = 21
_MOST_BARS = 24


def _groups(
    results: SweepResults, points: Sequence[PointResult]
) -> Iterator[tuple[str, Sequence[PointResult], dict[str, Any], str]]:
    """Yield name, points, marks and board of each group of a front's chart.

    Groups are predicted and simulated designs of one board, or the designs of each of several boards.
    """
    sound = [point for point in points if not point.failure]
    left = [point for point in points if point.failure]
    yield "left out by a constraint", left, {"color": IDLE, "symbol": "x-thin-open", "size": 5}, ""
    boards = results.spec.boards
    if len(boards) > 1:
        for number, board in enumerate(boards):
            found = [point for point in sound if point.point.board == board]
            simulated = ["circle" if point.fidelity == "prediction" else "diamond" for point in found]
            look = {"color": RUNS[number % len(RUNS)], "symbol": simulated, "size": 8}
            yield escape(board), found, look, board
    else:
        for known, name, colour, size in (
            (True, "predicted", PREDICTED, 7),
            (False, "simulated", SIMULATED, 9),
        ):
            found = [point for point in sound if (point.fidelity == "prediction") == known]
            yield name, found, {"color": colour, "symbol": "circle", "size": size}, ""
    front = [point for point in sound if point.on_front]
    yield "front of all objectives", front, {"color": INK, "symbol": "circle-open", "size": 12}, ""


def pareto(results: SweepResults, resource: str) -> go.Figure:
    """Draw cycles against a resource, of all workloads or one by a menu; time, where boards differ.  The
    chart shows all designs, marks the simulated ones, and draws the front of these two figures.
    """
    figure = go.Figure()
    workloads = main_workloads(results)
    choices = ["", *workloads] if len(workloads) > 1 else [""]
    measure = "microseconds" if len(results.spec.boards) > 1 else "cycles"
    for number, workload in enumerate(choices):
        cost = f"{workload}.{resource}" if workload and resource in ("bytes", "microjoules") else resource
        cycles = f"{workload}.{measure}" if workload else measure
        shown = [point for point in results.points if cycles in point.figures and cost in point.figures]
        sound = [point for point in shown if not point.failure]
        for name, points, look, board in _groups(results, shown):
            figure.add_scattergl(
                x=[point.figures[cost] for point in points],
                y=[point.figures[cycles] for point in points],
                mode="markers",
                name=name,
                visible=number == 0,
                marker=look,
                meta=board or None,
                **marks(results, points),
            )
        corners = pareto_front([(point.figures[cost], point.figures[cycles]) for point in sound])
        line = sorted((sound[n].figures[cost], sound[n].figures[cycles]) for n in corners)
        figure.add_scatter(
            x=[x for x, _ in line],
            y=[y for _, y in line],
            mode="lines",
            name="front of these two",
            visible=number == 0,
            line={"color": INK, "width": 1.4, "shape": "hv"},
            hoverinfo="skip",
        )
    styled(figure, height=450)
    if len(choices) > 1:
        each = len(figure.data) // len(choices)
        figure.update_layout(updatemenus=[menu(["all workloads", *map(escape, workloads)], each, y=1.26)])
        figure.update_layout(margin_t=138, height=472)  # the legend has up to three lines
    figure.update_xaxes(title=TITLES[resource], tickformat="~s", rangemode="tozero")
    title = "cycles" if measure == "cycles" else "µs"
    return figure.update_yaxes(title=title, type="log", dtick="D2", tickformat="~s")


def parallel(results: SweepResults) -> go.Figure:
    """Draw every design as a line through its parameters, cycles and resources; axes can be brushed."""
    points = [point for point in results.points if point.figures]
    names = {BOARD: BOARD, **short_names(results)}
    dimensions: list[dict[str, Any]] = []
    for name, short in names.items():
        values = values_of_axis(points, name)
        if len(values) > 1:
            place = {value: index for index, value in enumerate(values)}
            dimensions.append(
                {
                    "label": escape(short),
                    "values": [place[axes(point)[name]] for point in points],
                    "tickvals": list(range(len(values))),
                    "ticktext": [escape(str(value)) for value in values],
                }
            )
    several = len({point.point.board for point in points}) > 1
    measure = "microseconds" if several else "cycles"
    for name, title in {"cycles": "log10 cycles", **TITLES}.items():
        found = [point.figures[name] for point in points]
        if len(set(found)) > 1 and (several or name != "microseconds"):
            logged = name in ("cycles", "microseconds") and min(found) > 0
            shown = [math.log10(value) for value in found] if logged else found
            title = f"log10 {title}" if name == "microseconds" else title
            dimensions.append({"label": title, "values": shown, "tickformat": ".3~s"})
    cycles = [math.log10(max(1e-3, point.figures[measure])) for point in points]
    figure = go.Figure(
        go.Parcoords(
            dimensions=dimensions,
            line={"color": cycles, "colorscale": _SCALE},
            labelfont={"color": INK, "size": 12},
            labelangle=-20,  # names of a dozen axes lie beside each other
            tickfont={"color": INK, "size": 11},
            rangefont={"color": INK, "size": 10},
            unselected={"line": {"color": FAINT, "opacity": 0.3}},
        )
    )
    return styled(figure, height=430).update_layout(margin={"l": 60, "r": 60, "t": 90, "b": 24})


def heat(results: SweepResults, objective: str) -> go.Figure:
    """Draw the best value of an objective over two parameters, all others free; a menu chooses the two."""
    at = list(results.spec.objectives).index(objective)
    least = results.spec.objectives[objective] == "min"
    sound = [point for point in results.points if point.figures and not point.failure]
    named = {BOARD: BOARD, **short_names(results)}
    names = {name: short for name, short in named.items() if len(values_of_axis(sound, name)) > 1}
    pairs = list(itertools.combinations(names, 2))[:_MOST_MENU]
    figure, layouts = go.Figure(), []
    for number, (across, up) in enumerate(pairs):
        columns, lines = values_of_axis(sound, across), values_of_axis(sound, up)
        best: dict[tuple[Value, Value], PointResult] = {}
        for point in sound:
            place = (axes(point)[up], axes(point)[across])
            if place not in best or results.objectives(point)[at] < results.objectives(best[place])[at]:
                best[place] = point
        cells = [[best.get((line, column)) for column in columns] for line in lines]

        def each(show: Callable[[PointResult], Any], cells: Any = cells) -> list[list[Any]]:
            return [[None if cell is None else show(cell) for cell in line] for line in cells]

        figure.add_heatmap(
            x=[escape(str(value)) for value in columns],
            y=[escape(str(value)) for value in lines],
            z=(worth := each(lambda point: abs(results.objectives(point)[at]))),
            # Values that differ by little have one colour.
            **_range([value for line in worth for value in line if value is not None], least),
            colorscale=_SCALE if least else [(1 - share, colour) for share, colour in _SCALE[::-1]],
            showscale=False,
            texttemplate="%{z:.3~s}",
            textfont={"size": 12},
            visible=number == 0,
            xgap=2,
            ygap=2,
            hoverongaps=False,
            customdata=each(lambda point: [describe(results, point), point.number]),
            hovertemplate="%{customdata[0]}<extra></extra>",
        )
        layouts.append({"xaxis.title.text": escape(names[across]), "yaxis.title.text": escape(names[up])})
    styled(figure, height=380)
    if pairs:
        choose = menu([f"{y['yaxis.title.text']} by {y['xaxis.title.text']}" for y in layouts], 1, y=1.04)
        for button, layout in zip(choose["buttons"], layouts, strict=True):
            button["args"].append(layout)
        figure.update_layout(updatemenus=[choose] if len(pairs) > 1 else [])
        figure.update_xaxes(title=layouts[0]["xaxis.title.text"])
        figure.update_yaxes(title=layouts[0]["yaxis.title.text"])
    figure.update_xaxes(type="category", showgrid=False)
    return figure.update_yaxes(type="category", showgrid=False)


def _range(values: Sequence[float], least: bool) -> dict[str, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    if least:
        return {"zmin": low, "zmax": max(high, 1.25 * low)}
    return {"zmin": min(low, 0.8 * high), "zmax": high}


def roofline(results: SweepResults) -> go.Figure:
    """Draw every design on every workload under the roofs of the boards and of the multipliers."""
    workloads = main_workloads(results)
    shown = [
        (point, workload)
        for workload in workloads
        for point in results.points
        if point.figures.get(f"{workload}.useful_macs") and point.figures.get(f"{workload}.bytes")
    ]
    figure = go.Figure()
    if not shown:
        figure.add_annotation(
            text="No design multiplies.", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5
        )
        return styled(figure, height=420)

    def of(point: PointResult, workload: str, name: str) -> float:
        return point.figures[f"{workload}.{name}"]

    intensity = [of(*each, "useful_macs") / of(*each, "bytes") for each in shown]
    slots = sorted({round(of(*each, "mac_slots") / of(*each, "cycles")) for each in shown})
    low, high = min(intensity) / 3, 3 * max(intensity)
    for name in dict.fromkeys(point.point.board for point, _ in shown):
        board = load_board(name)
        slope = board.memory.realistic_bytes_per_second / (board.clock_mhz * 1e6)
        figure.add_scatter(
            x=[low, slots[-1] / slope, max(high, slots[-1] / slope)],
            y=[slope * low, slots[-1], slots[-1]],
            mode="lines",
            name=f"{escape(board.name)}, {slope:,.0f} B/cycle",
            line={"color": INK, "width": 2},
            hoverinfo="skip",
        )
    for number, count in enumerate(slots[:-1]):
        figure.add_scatter(
            x=[low, max(high, slots[-1])],
            y=[count, count],
            mode="lines",
            name="fewer multipliers",
            legendgroup="fewer",
            showlegend=number == 0,
            line={"color": IDLE, "width": 1, "dash": "dot"},
            hoverinfo="skip",
        )
    boards = results.spec.boards if len(results.spec.boards) > 1 else ()
    # Coloured by workload; by board where there are several.
    for number, group in enumerate(boards or workloads):
        dots = [each for each in shown if group in (each[1], each[0].point.board)]
        figure.add_scattergl(
            x=[of(*each, "useful_macs") / of(*each, "bytes") for each in dots],
            y=[of(*each, "useful_macs") / of(*each, "cycles") for each in dots],
            mode="markers",
            name=escape(group),
            meta=group if boards else None,
            marker={"color": RUNS[number % len(RUNS)], "size": [9 if p.on_front else 6 for p, _ in dots]},
            **marks(results, [point for point, _ in dots]),
        )
    rates = [of(*each, "useful_macs") / of(*each, "cycles") for each in shown]
    figure.update_xaxes(log_axis(low, high), title="useful MACs a byte moved")
    figure.update_yaxes(log_axis(min(rates) / 2, 1.6 * slots[-1]), title="useful MACs a cycle")
    return styled(figure, height=430)


def split(results: SweepResults) -> go.Figure:
    """Draw how the designs of the front share the board's DSPs among engines, by the first objective."""
    front = sorted(results.front, key=results.objectives)[:_MOST_BARS]
    objectives = [[f"{abs(value):,.4g}" for value in results.objectives(point)] for point in front]
    names = [
        f"{escape(', '.join(values))} (point {point.number})"
        for point, values in zip(front, objectives, strict=True)
    ]
    figure = go.Figure()
    for number, engine in enumerate(results.spec.engines):
        counts = [point.figures[f"{engine}.dsp"] for point in front]
        figure.add_bar(
            y=names,
            x=counts,
            name=escape(engine),
            orientation="h",
            marker={"color": RUNS[number % len(RUNS)]},
            text=[f"{count:,.0f}" for count in counts],
            textposition="inside",
            **marks(results, front),
        )
    for board in dict.fromkeys(point.point.board for point in front):
        most = load_board(board).user.dsp
        figure.add_vline(x=most, line={"color": INK, "width": 1.4, "dash": "dot"})
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title="DSP; dotted: all that the board has for kernels", tickformat="~s")
    figure.update_yaxes(autorange="reversed", type="category", ticksuffix="  ", showgrid=False)
    return styled(figure, height=170 + 30 * len(front))


def predictions(results: SweepResults) -> go.Figure:
    """Draw the error of every prediction that a simulation was compared with; the worst has its name."""
    figure = go.Figure()
    found = [each for point in results.points for each in compared(point)]
    for number, workload in enumerate(results.spec.workloads):
        of = [each for each in found if each.workload == workload]
        figure.add_scatter(
            x=[each.measured for each in of],
            y=[100 * each.error for each in of],
            mode="markers",
            name=escape(workload),
            marker={"color": RUNS[number % len(RUNS)], "size": 9},
            customdata=[
                [f"<b>point {each.number}</b>, {escape(each.workload)}<br>{each.words}", each.number]
                for each in of
            ],
            hovertemplate="%{customdata[0]}<extra></extra>",
        )
    styled(figure, height=430)
    if worst := worst_prediction(results):
        figure.add_annotation(
            x=math.log10(worst.measured),
            y=100 * worst.error,
            text=f"worst: point {worst.number}, {escape(worst.workload)}, {worst.error:+.2%}",
            showarrow=True,
            arrowcolor=INK,
            ax=0,
            ay=-34 if worst.error > 0 else 34,
        )
    most = max([2.2, *(130 * abs(each.error) for each in found)])
    for limit in (-2, 2):
        figure.add_hline(y=limit, line={"color": BUSY, "width": 1, "dash": "dash"})
    measured = [each.measured for each in found]
    dense = max(measured, default=1) < _SPAN * min(measured, default=1)
    figure.update_xaxes(type="log", dtick="D2" if dense else 1, title="cycles measured", tickformat="~s")
    return figure.update_yaxes(range=[-most, most], ticksuffix=" %", title="prediction too long by")
