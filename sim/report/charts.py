"""The figures of a report page, each drawn from the reports alone."""

from collections.abc import Iterable, Sequence
from html import escape

import plotly.graph_objects as go

from sim.report.report import Report
from sim.report.sections import ChannelTraffic
from sim.report.style import BUSY, IDLE, INK, RUNS, beside, log_axis, menu, styled

STALLS = ("#e07b39", "#c8504b", "#e9b44c", "#8e5572", "#7a8f3c", "#b07f55", "#5f6caf", "#d98cb3")
READ, WRITE, OVERHEAD = "#2a7f8e", "#e07b39", "#c9d1da"
SIMULATED, PREDICTED = "#2a7f8e", "#a9d0d6"
SYMBOLS = ("circle", "square", "triangle-up")

#: From this ratio of the longest to the shortest run on, cycles are drawn on a logarithmic axis.
_LOGARITHMIC = 100
_LABEL_CHARACTERS = 30
#: More runs than this need a taller roofline for their legend.
_LEGEND_RUNS = 12

Labelled = Sequence[tuple[str, Report]]


def cycle_breakdown(runs: Labelled) -> go.Figure:
    """Draw where each run's cycles went: one bar a run, its parts adding up to 100 %."""
    causes = list(dict.fromkeys(cause for _, report in runs for cause in report.cycles.cycles_stall))
    parts = [("busy", BUSY, [report.cycles.cycles_busy for _, report in runs])]
    for number, cause in enumerate(causes):
        colour = STALLS[number % len(STALLS)]
        waits = [report.cycles.cycles_stall.get(cause, 0) for _, report in runs]
        parts.append((f"stall: {escape(cause.replace('_', ' '))}", colour, waits))
    parts.append(("idle", IDLE, [report.cycles.cycles_idle for _, report in runs]))
    figure = go.Figure()
    for name, colour, cycles in parts:
        shares = [
            100 * part / report.cycles.cycles_total for part, (_, report) in zip(cycles, runs, strict=True)
        ]
        figure.add_bar(
            y=_names(runs),
            x=shares,
            name=name,
            orientation="h",
            marker={"color": colour, "line": {"color": "white", "width": 1}},
            text=[f"{share:.1f} %" if share >= 8 else "" for share in shares],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            customdata=cycles,
            hovertemplate=f"%{{y}}<br>{name}: %{{customdata:,}} cycles (%{{x:.2f}} %)<extra></extra>",
        )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(range=[0, 100], ticksuffix=" %", title="share of cycles from start to done")
    return _bars_by_run(figure, len(runs))


def energy_breakdown(runs: Labelled) -> go.Figure:
    """Draw the energy of each run that has one, by source; a bar a run, its range as a whisker."""
    known = [(label, report.energy) for label, report in runs if report.energy is not None]
    sources = dict.fromkeys(source for _, energy in known for source in energy.source_picojoules)
    figure = go.Figure()
    names = [_shortened(label) for label, _ in known]
    for number, source in enumerate(sources):
        values = [1e-6 * energy.source_picojoules.get(source, 0.0) for _, energy in known]
        if not any(values):
            continue
        name = escape(source.replace("_", " "))
        figure.add_bar(
            y=names,
            x=values,
            name=name,
            orientation="h",
            marker={"color": RUNS[number % len(RUNS)], "line": {"color": "white", "width": 1}},
            hovertemplate=f"%{{y}}<br>{name}: %{{x:,.3f}} µJ<extra></extra>",
        )
    totals = [1e-6 * energy.energy_total_picojoules for _, energy in known]
    above = [1e-6 * energy.energy_high_picojoules for _, energy in known]
    below = [1e-6 * energy.energy_low_picojoules for _, energy in known]
    figure.add_scatter(
        y=names,
        x=totals,
        name="range",
        mode="markers",
        marker={"color": INK, "size": 1},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [high - whole for high, whole in zip(above, totals, strict=True)],
            "arrayminus": [whole - low for low, whole in zip(below, totals, strict=True)],
            "color": INK,
        },
        hovertemplate="%{y}<br>%{x:,.3f} µJ in all<extra></extra>",
    )
    figure.update_layout(barmode="stack")
    figure.update_xaxes(title="microjoules from start to done", rangemode="tozero")
    return _bars_by_run(figure, len(known))


def predicted_cycles(runs: Labelled) -> go.Figure:
    """Draw simulated cycles beside the analytic prediction, and the roofline bound as a mark."""
    names = _names(runs)
    simulated = [report.cycles.cycles_total for _, report in runs]
    predicted = [report.prediction.predicted_cycles for _, report in runs]
    errors = [100 * report.prediction.predicted_cycles_error_ratio for _, report in runs]
    least = [", a lower bound" * report.prediction.predicted_lower_bound for _, report in runs]
    bounds = [report.roofline.bound_cycles for _, report in runs]
    logarithmic = max(simulated) > _LOGARITHMIC * min(simulated)
    figure = go.Figure()
    figure.add_bar(
        y=names,
        x=predicted,
        name="predicted",
        orientation="h",
        marker={"color": PREDICTED},
        text=[f"{error:+.2f} %{bound}" for error, bound in zip(errors, least, strict=True)],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y}<br>predicted: %{x:,} cycles (%{text})<extra></extra>",
    )
    figure.add_bar(
        y=names,
        x=simulated,
        name="measured",
        orientation="h",
        marker={"color": SIMULATED},
        hovertemplate="%{y}<br>measured: %{x:,} cycles<extra></extra>",
    )
    figure.add_scatter(
        y=names,
        x=bounds,
        name="roofline bound",
        mode="markers",
        marker={"symbol": "line-ns", "size": 26, "line": {"color": INK, "width": 2}},
        hovertemplate="%{y}<br>bound: %{x:,} cycles<extra></extra>",
    )
    figure.update_layout(barmode="group")
    largest = max(*simulated, *predicted)
    if logarithmic:
        figure.update_xaxes(type="log", title="cycles from start to done (logarithmic)")
    else:
        figure.update_xaxes(range=[0, 1.18 * largest], tickformat="~s", title="cycles from start to done")
    return _bars_by_run(figure, len(runs))


def roofline(runs: Labelled) -> go.Figure:
    """Draw every run under its roof: useful multiply-accumulates a cycle over those a byte."""
    figure = go.Figure()
    shown = [
        (label, report)
        for label, report in runs
        if report.work.useful_macs and report.traffic.useful_bytes and report.work.mac_slots_per_cycle
    ]
    roofs = dict.fromkeys(
        (report.work.mac_slots_per_cycle, report.roofline.memory_ceiling_bytes_per_cycle)
        for _, report in shown
    )
    reach = [slots / slope for slots, slope in roofs]
    for _, report in shown:
        reach += [report.roofline.intensity_macs_per_byte, report.roofline.compulsory_intensity_macs_per_byte]
    for slots, slope in roofs:
        low, ridge, high = min(reach) / 10, slots / slope, 10 * max(reach)
        name = f"{slots:,} MAC/cycle, {slope:.4g} B/cycle"
        figure.add_scatter(
            x=[low, ridge, high],
            y=[slope * low, slots, slots],
            mode="lines",
            name=name,
            line={"color": INK, "width": 2},
            opacity=0.75,
            showlegend=len(roofs) > 1 or len(shown) > 1,
            hovertemplate=f"roof: {name}<extra></extra>",
        )
    for number, (label, report) in enumerate(shown):
        colour = RUNS[number % len(RUNS)]
        symbol = SYMBOLS[number // len(RUNS) % len(SYMBOLS)]
        line, work = report.roofline, report.work
        figure.add_scatter(
            x=[line.intensity_macs_per_byte, line.compulsory_intensity_macs_per_byte],
            y=[work.macs_per_cycle, work.macs_per_cycle],
            mode="markers+lines",
            name=_shortened(label),
            line={"color": colour, "width": 1, "dash": "dot"},
            marker={
                "color": [colour, "white"],
                "symbol": symbol,
                "size": [12, 9],
                "line": {"color": colour, "width": 2},
                "opacity": 1,
            },
            customdata=["on the bytes it moved", "if every byte moved once"],
            hovertemplate=f"{escape(label)}<br>%{{y:,.1f}} MAC/cycle at %{{x:,.2f}} MAC/byte %{{customdata}}"
            f"<br>{line.cycles_over_bound_ratio:.3f} x its bound ({line.bound_by})<extra></extra>",
        )
    figure.update_xaxes(title="useful MACs a byte")
    figure.update_yaxes(title="useful MACs a cycle")
    if shown:
        rates = [slots for slots, _ in roofs] + [report.work.macs_per_cycle for _, report in shown]
        figure.update_xaxes(log_axis(min(reach) / 2.5, max(reach) * 2.5))
        figure.update_yaxes(log_axis(min(*rates, max(rates) / 5) / 1.5, max(rates) * 1.5))
    else:
        figure.add_annotation(
            text="No run multiplies.", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5
        )
    figure = styled(figure, height=_plot_height(len(runs)))
    if len(runs) > 1:
        beside(figure, top=24, x=1.02)
    return figure


def channel_traffic(runs: Labelled) -> go.Figure:
    """Draw the bytes through each channel of one run; a menu chooses the run when there are several."""
    figure = go.Figure()
    for number, (_, report) in enumerate(runs):
        channels = report.traffic.channels
        names = [f"{channel.memory} {channel.channel}" for channel in channels]
        for name, colour, direction in (("read", READ, "read"), ("written", WRITE, "write")):
            figure.add_bar(
                x=names,
                y=[getattr(channel, f"useful_{direction}_bytes") for channel in channels],
                name=name,
                marker={"color": colour},
                visible=number == 0,
                customdata=[_events(channel) for channel in channels],
                hovertemplate=f"%{{x}}<br>%{{y:,}} bytes {name}%{{customdata}}<extra></extra>",
            )
        figure.add_bar(
            x=names,
            y=[max(0, (channel.bus_bytes or 0) - channel.useful_bytes) for channel in channels],
            name="moved but not asked for",
            marker={"color": OVERHEAD},
            visible=number == 0,
            hovertemplate="%{x}<br>%{y:,} bytes of the beats beyond what was asked for<extra></extra>",
        )
    figure.update_layout(barmode="stack")
    if len(runs) > 1:
        figure.update_layout(updatemenus=[menu(_names(runs), 3, y=1.12)])
    figure.update_xaxes(title="memory channel", type="category")
    figure.update_yaxes(title="bytes", tickformat="~s", rangemode="tozero")
    return styled(figure, height=_plot_height(len(runs)))


def _events(channel: ChannelTraffic) -> str:
    return "".join(f"<br>{name.replace('_', ' ')}: {count:,}" for name, count in channel.events.items())


def _names(runs: Iterable[tuple[str, Report]]) -> list[str]:
    return [_shortened(label) for label, _ in runs]


def _shortened(label: str) -> str:
    """Return a label short enough for an axis; its end, which tells numbered runs apart, is kept."""
    if len(label) > _LABEL_CHARACTERS:
        label = f"{label[: _LABEL_CHARACTERS - 9]}…{label[-8:]}"
    return escape(label)


def _bars_by_run(figure: go.Figure, runs: int) -> go.Figure:
    figure.update_yaxes(range=[runs - 0.5, -0.5], type="category", ticksuffix="  ", showgrid=False)
    return styled(figure, height=170 + runs * (48 if runs < 8 else 36))


def _plot_height(runs: int) -> int:
    return 420 if runs <= _LEGEND_RUNS else 560
