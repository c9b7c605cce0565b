"""``loomwork compare network``; see `sim.engines.network.compare.suite`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.host.options import BoardOption, ConfigOption, DirectoryOption


def compare_network(
    models: Annotated[list[Path], typer.Argument(help="Quantized models, .onnx.")],
    board: BoardOption = "u55c",
    config: ConfigOption = None,
    tokens: Annotated[
        str | None, typer.Option("--tokens", help="Tokens of each sentence, 17,40, for models on tokens.")
    ] = None,
    measure: Annotated[
        str, typer.Option(help="Networks whose gates are simulated, by their files' names: minilm,resnet18.")
    ] = "",
    exact: Annotated[
        Path | None,
        typer.Option("--float", help="Float model, .onnx: the error of each tensor on the inputs beside it."),
    ] = None,
    tensors: Annotated[
        Path | None, typer.Option("--input", help="Inputs, .npz, samples along the first dimension.")
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Tensors by name, .npz: the first that differs on the first sample is named."),
    ] = None,
    output: DirectoryOption = Path("build/compare-network"),
) -> None:
    """Compare networks with other ways to run them, with published figures, and with a float model."""
    from sim.engines.network.compare.suite import run_compare
    from sim.engines.network.token_inputs import parse_lengths

    lengths = () if tokens is None else parse_lengths(tokens)
    files = {"exact": exact, "tensors": tensors, "reference": reference}
    if not run_compare(models, board, config, output, tokens=lengths, measure=measure, **files):
        raise typer.Exit(1)
