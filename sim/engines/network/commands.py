"""The network engine's subcommands of ``loomwork``; see `sim.cli.main`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from hw.errors import InputError
from sim.host.files import write_bytes
from sim.host.options import PLAN, BoardOption, ConfigOption
from sim.host.paths import check_directory, check_distinct, check_readable, check_writable


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the network engine's commands."""
    app.command(rich_help_panel=PLAN)(quantize)
    app.command("compile", rich_help_panel=PLAN)(compile_model)
    from sim.engines.network.compare.command import compare_network

    compare.command("network")(compare_network)


def compile_model(
    model: Annotated[Path, typer.Argument(help="Quantized model, .onnx; see `loomwork quantize`.")],
    board: BoardOption = "u55c",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Build folder to write [build/MODEL].")
    ] = None,
    config: ConfigOption = None,
    scratchpad_bytes: Annotated[
        int | None, typer.Option(min=64, help="Bytes to plan for; the kernel's scratchpad without it.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Costs of each operator, .json.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Page to write: cycles of each layer, roofline, bounds.")
    ] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", help="Value of a dimension the model leaves open, NAME=VALUE."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape", help="Shape of an input the model leaves open, INPUT=1,3,48,192; before --dim."
        ),
    ] = None,
    tokens: Annotated[
        str | None, typer.Option("--tokens", help="Tokens of each sentence, 17,40, for a model on tokens.")
    ] = None,
) -> None:
    """Compile a quantized network for the kernel of a board: plan, program image, packed weights, costs.

    `loomwork sim` and `loomwork launch` take the folder in place of an engine's name. Ctrl-C ends the search
    for a plan; the best so far is compiled.
    """
    started = time.perf_counter()
    directory = output or Path("build") / model.stem
    check_readable("model", model)
    check_directory("--output", directory)
    check_writable("--report", report)
    check_writable("--html", html)
    from hw.board.files import find_board
    from sim.engines.network.build_folder import check_replaceable

    read = (("model", model), ("--config", config), ("--board", find_board(board)))
    check_distinct(*read, ("--report", report), ("--html", html))
    check_replaceable(directory)
    from sim.engines.network.compiling import compile_for
    from sim.engines.network.costs import Costs
    from sim.engines.network.token_inputs import parse_lengths
    from sim.host.options import parse_dimensions
    from sim.plans.commands import parse_shapes

    build, interrupted = compile_for(
        model,
        board,
        directory,
        config_file=config,
        scratchpad_bytes=scratchpad_bytes,
        dimensions=parse_dimensions(dim or ()),
        shapes=parse_shapes(shape or ()),
        tokens=() if tokens is None else parse_lengths(tokens),
    )
    costs = Costs(build=build)
    costs.print(time.perf_counter() - started)
    if report is not None:
        costs.write(report)
        print(report)
    if html is not None:
        from sim.engines.network.layers_page import render_layers

        render_layers(build.program, build.config, build.board, html)
        print(html)
    print(directory)
    if interrupted:
        raise KeyboardInterrupt


def quantize(
    model: Annotated[Path, typer.Argument(help="Float model, .onnx; its weights may be int8.")],
    calibration: Annotated[
        Path,
        typer.Option(
            help="Samples of each input along its first dimension, .npz; for tokens a sentence a line."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Quantized model to write, .onnx.")],
    form: Annotated[
        Literal["qdq", "qoperator"], typer.Option(help="Operators between scales, or QLinear operators.")
    ] = "qdq",
    unsigned: Annotated[bool, typer.Option(help="Activations are uint8, not int8.")] = False,
    tokenizer: Annotated[
        Path | None, typer.Option(help="The model's tokenizer.json, for sentences as text.")
    ] = None,
    judge: Annotated[
        Path | None, typer.Option(help="Other sentences, to compare with the float model by.")
    ] = None,
    mean: Annotated[
        bool, typer.Option("--mean", help="The mean of a sentence's tokens is the output.")
    ] = False,
    first: Annotated[
        bool, typer.Option("--first", help="The first token of a sentence is the output.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Output of the model to keep; all without it.")
    ] = None,
    longest: Annotated[int, typer.Option(min=1, max=4096, help="Most tokens of a sentence.")] = 512,
) -> None:
    """Quantize a float model to integers, with a scale a channel of the weights.

    A model on images or vectors passes onnxruntime's static quantizer.  One on tokens, a transformer, has
    sums in 16 bits and products in 8; the command prints what each choice is worth.
    """
    check_readable("model", model)
    check_writable("--output", output)
    read = (("model", model), ("--calibration", calibration), ("--tokenizer", tokenizer), ("--judge", judge))
    check_distinct(*read, ("--output", output))
    if not calibration.is_dir():
        check_readable("--calibration", calibration)
    from hw.network.graph.transformer.reader import takes_tokens

    if takes_tokens(model):
        if mean and first:
            raise InputError("--first", "given", "left out: --mean is the output")
        if form != "qdq" or unsigned:
            raise InputError("--form or --unsigned", "given", "left out: the model takes tokens")
        from sim.engines.network.quantizing import quantize_sentences

        quantize_sentences(
            model,
            calibration,
            output,
            tokenizer=tokenizer,
            judge=judge,
            mean=mean,
            first=first,
            outputs=keep or (),
            longest=longest,
        )
        return
    if tokenizer or judge or mean or first or keep:
        raise InputError(
            "--tokenizer, --judge, --mean, --first or --keep", "given", "left out: the model takes no tokens"
        )
    from hw.network.graph.onnx_reader import read_network
    from hw.network.graph.quantize import quantize as quantized
    from sim.host.progress import ProgressLine
    from sim.run.tensors import load_tensors

    with ProgressLine("Quantizing"):
        made = quantized(model, load_tensors(calibration), operators=form == "qoperator", unsigned=unsigned)
        network = read_network(made, name=model.stem)
    write_bytes(output, made)
    counts = f"{len(network.operators)} operators, {network.macs} MACs, {network.weight_bytes} weight bytes"
    print(f"{output}: {counts}")
