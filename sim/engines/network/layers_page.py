"""The self-contained HTML page of a network on a kernel: the cycles of each layer, and their causes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from hw.board import Board
from hw.network.config import NetworkConfig
from hw.network.model.layers import Layer, layers_of, play
from hw.network.model.timeline import Bound
from hw.network.predict import memory_bytes_per_cycle, predict
from hw.network.program.program import NUMBER_BYTES, NetworkProgram
from hw.prediction import Prediction
from sim.report.parts import Headline, chart, write_page
from sim.report.report import Report
from sim.report.style import BUSY, IDLE, INK, hover, log_axis, styled
from sim.report.text import percent, signed_percent, sized, times, whole

#: Causes of cycles: their names and colours.
_CAUSES = {
    Bound.ARRAY: ("array", BUSY),
    Bound.VECTOR: ("vector unit", "#5f6caf"),
    Bound.ATTENTION: ("attention unit", "#7a8f3c"),
    Bound.WEIGHTS: ("weights", "#e07b39"),
    Bound.RESIDUAL: ("residual", "#8e5572"),
    Bound.READS: ("transfers from memory", "#c8504b"),
    Bound.WRITES: ("transfers to memory", "#e9b44c"),
    Bound.PIPELINE: ("pipeline", IDLE),
}
_COLUMNS = (
    "layer", "bound by", "commands", "first cycle", "cycles", "share", "multipliers useful", "MACs",
    "weights read", "transfers", "MACs a byte",
)  # fmt: skip
#: Of a number of a token.
_NUMBER_BITS = 8 * NUMBER_BYTES
#: Characters of a long name that an axis shows: the first ones, and the last.
_FIRST, _LAST = 18, 10


def render_layers(
    program: NetworkProgram,
    config: NetworkConfig,
    board: Board,
    path: Path,
    *,
    measured: Report | None = None,
) -> None:
    """Write the page of a program.

    ``measured``: the report of its launch, which has the cycles of the whole. Raises `InputError` when the
    path cannot be written.
    """
    predicted, played = predict(program, config, board), play(program, config, board)
    layers = layers_of(program, played)
    write_page(
        "layers.html.j2",
        path,
        name=program.name,
        board=board.title,
        shape=f"{config.matrix.inputs} x {config.columns} multipliers, {config.lanes} lanes",
        commands=len(program.steps),
        tiles=_tiles(program, predicted, board, measured),
        cycles=chart(layer_cycles(layers), "layers", zoom=True),
        roofline=chart(layer_roofline(layers, predicted), "roofline", zoom=True),
        columns=_COLUMNS,
        layers=[_cells(layer, predicted) for layer in layers],
        outside=[
            ("loading the program", f"{whole(played.load_cycles)} cycles"),
            ("after the last result", f"{whole(played.drain_cycles)} cycles"),
            ("memory", f"{memory_bytes_per_cycle(config, board):,.4g} bytes a cycle"),
            ("packets of weights", sized(predicted.details["packet_bytes"])),
            ("program", sized(predicted.read_bytes["program"])),
        ],
    )


def _tiles(
    program: NetworkProgram, predicted: Prediction, board: Board, measured: Report | None
) -> list[Headline]:
    cycles = predicted.cycles_total
    what, count = work_of(program)
    useful = predicted.useful_macs / predicted.mac_slots
    moved = predicted.moved_bytes / predicted.compulsory_bytes
    tiles = [
        Headline("Cycles, predicted", whole(cycles), f"{cycles / board.clock_mhz:,.1f} µs"),
        Headline(
            f"{what.capitalize()} a second",
            whole(int(count * 1e6 * board.clock_mhz / cycles)),
            f"at {board.clock_mhz:g} MHz",
        ),
        Headline("Multiplier slots useful", percent(useful, places=1), "from start to done"),
        Headline(
            "Distance to the roofline", times(cycles / predicted.bound_cycles, places=2), _binding(predicted)
        ),
        Headline("Bytes moved", times(moved, places=2), "the compulsory bytes, weights among them"),
    ]
    if measured is not None:
        total = measured.cycles.cycles_total
        error = signed_percent((cycles - total) / total)
        tiles.insert(1, Headline("Cycles, measured", whole(total), f"the prediction is {error} off"))
    return tiles


def work_of(program: NetworkProgram) -> tuple[str, int]:
    """Return the work of one launch: its tokens, of a network on numbers of them, or one image."""
    tokens = [home.value.elements for home in program.inputs if home.value.bits == _NUMBER_BITS]
    return ("tokens", tokens[0]) if tokens else ("images", 1)


def _binding(predicted: Prediction) -> str:
    by_compute = predicted.compute_bound_cycles >= predicted.memory_bound_cycles
    return "the compute bound" if by_compute else "the memory bound"


def _cells(layer: Layer, predicted: Prediction) -> list[str]:
    slots = layer.cycles * predicted.mac_slots_per_cycle
    byte = layer.memory_bytes
    return [
        layer.name,
        _CAUSES[layer.bound][0],
        whole(layer.steps),
        whole(layer.begin),
        whole(layer.cycles),
        percent(layer.cycles / predicted.cycles_total, places=1),
        percent(layer.macs / slots, places=1) if layer.macs else "",
        whole(layer.macs) if layer.macs else "",
        sized(layer.weight_bytes) if layer.weight_bytes else "",
        sized(layer.transfer_bytes) if layer.transfer_bytes else "",
        f"{layer.macs / byte:,.1f}" if layer.macs and byte else "",
    ]


def layer_cycles(layers: Sequence[Layer]) -> go.Figure:
    """Draw the cycles of each layer, in order of execution, by cause."""
    figure = go.Figure()
    numbers = list(range(len(layers)))
    for cause, (name, colour) in _CAUSES.items():
        figure.add_bar(
            x=numbers,
            y=[layer.spent.get(cause, 0) for layer in layers],
            name=name,
            marker={"color": colour},
            **hover([_story(layer) for layer in layers]),
        )
    figure.update_layout(barmode="stack", bargap=0.15)
    figure.update_xaxes(
        tickmode="array",
        tickvals=numbers,
        ticktext=[_shortened(layer.name) for layer in layers],
        tickangle=-60,
        tickfont={"size": 10},
        range=[-0.6, len(layers) - 0.4],
        showgrid=False,
    )
    figure.update_yaxes(title="cycles", tickformat="~s", rangemode="tozero")
    return styled(figure, height=520)


def layer_roofline(layers: Sequence[Layer], predicted: Prediction) -> go.Figure:
    """Draw each layer that multiplies under the roof of multipliers and memory."""
    shown = [layer for layer in layers if layer.macs and layer.memory_bytes]
    slots, slope = predicted.mac_slots_per_cycle, predicted.memory_bytes_per_cycle
    figure = go.Figure()
    if not shown:
        figure.add_annotation(
            text="No layer multiplies.", showarrow=False, xref="paper", yref="paper", x=0.5, y=0.5
        )
        return styled(figure, height=420)
    intensities = [layer.macs / layer.memory_bytes for layer in shown]
    rates = [layer.macs / layer.cycles for layer in shown]
    low, high = min(*intensities, slots / slope) / 2.5, max(*intensities, slots / slope) * 2.5
    figure.add_scatter(
        x=[low, slots / slope, high],
        y=[slope * low, slots, slots],
        mode="lines",
        name="roof",
        line={"color": INK, "width": 2},
        opacity=0.75,
        hovertemplate=f"roof: {slots:,} MAC/cycle, {slope:.4g} B/cycle<extra></extra>",
    )
    for cause, (name, colour) in _CAUSES.items():
        own = [number for number, layer in enumerate(shown) if layer.bound is cause]
        if own:
            figure.add_scatter(
                x=[intensities[number] for number in own],
                y=[rates[number] for number in own],
                mode="markers",
                name=f"bound by {name}",
                marker={
                    "color": colour,
                    "size": [
                        6 + 24 * (shown[number].cycles / predicted.cycles_total) ** 0.5 for number in own
                    ],
                    "opacity": 0.8,
                    "line": {"color": "white", "width": 1},
                },
                **hover([_story(shown[number]) for number in own]),
            )
    figure.update_xaxes(log_axis(low, high), title="useful MACs a byte of weights and transfers")
    figure.update_yaxes(log_axis(min(*rates, slots / 10) / 1.5, slots * 1.5), title="useful MACs a cycle")
    return styled(figure, height=460)


def _story(layer: Layer) -> str:
    parts = [f"<b>{escape(layer.name)}</b>", f"{layer.cycles:,} cycles from {layer.begin:,} on"]
    parts += [
        f"{_CAUSES[cause][0]}: {layer.spent[cause]:,}" for cause in _CAUSES if layer.spent.get(cause, 0)
    ]
    if layer.macs:
        parts.append(f"{layer.macs:,} MACs, {layer.macs / layer.cycles:,.0f} a cycle")
    if layer.memory_bytes:
        parts.append(f"{sized(layer.weight_bytes)} of weights, {sized(layer.transfer_bytes)} of tensors")
    return "<br>".join(parts)


def _shortened(name: str) -> str:
    short = name.removesuffix("_quant")
    if len(short) > _FIRST + _LAST + 1:
        short = f"{short[:_FIRST]}…{short[-_LAST:]}"
    return escape(short)
