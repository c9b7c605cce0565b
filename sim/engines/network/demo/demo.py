"""The network engine's demo: two networks on one kernel, beside the float models' results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hw.board import Board
from hw.config import check_fits
from hw.errors import InputError
from hw.network.config import NetworkConfig
from hw.registry import find_engine
from sim.engines.network.demo import encoder, photograph
from sim.engines.network.demo.page import write_sentences
from sim.engines.network.demo.photograph import PHOTOGRAPH, Documents, documents_of
from sim.engines.network.nsfw import picture
from sim.run.adapter import Demo, Results

#: In fewer bytes a program has more commands than the kernel that goes with them.
LEAST_SCRATCHPAD_BYTES = 1 << 20
#: Rows of the attention unit.
ATTENTION_ROWS = 16


def network_demo(board: Board, model: str) -> Demo | None:
    """Return all-MiniLM-L6-v2 on sentences and open_nsfw on a photograph.

    ``model``: name of the array that holds a network. The kernel is the board's default with the attention
    unit. On a board without room for it the photograph is alone; None on one whose kernel is too small.
    """
    config = kernel_of(board)
    if config.scratchpad_bytes < LEAST_SCRATCHPAD_BYTES:
        return None
    title = photograph.TITLE
    launches = {photograph.LAUNCH: lambda results: photograph.tensors(model)}
    documents: Documents = documents_of(photograph.LAUNCH, photograph.network, config, board)
    if config.attention_rows:
        title = f"{encoder.TITLE}; {title}"
        launches = {encoder.LAUNCH: lambda results: encoder.tensors(model), **launches}
        documents = {
            "sentences.html": (
                "Sentences: pairs ranked, what runs when, cycles and bytes",
                lambda results, path: write_sentences(results[encoder.LAUNCH], config, board, path),
            ),
            **documents_of(encoder.LAUNCH, encoder.network, config, board),
            **documents,
        }

    def conclude(results: Results) -> Sequence[str]:
        lines = encoder.conclude(results[encoder.LAUNCH], board) if config.attention_rows else []
        return [*lines, *photograph.conclude(results[photograph.LAUNCH], board)]

    return Demo(
        title=title,
        config=config,
        launches=launches,
        conclude=conclude,
        pictures=lambda results: {PHOTOGRAPH: picture(PHOTOGRAPH)},
        documents=documents,
        logged=(encoder.LAUNCH,),
        first=True,
        kept=True,
    )


def kernel_of(board: Board) -> NetworkConfig:
    """Return a board's default kernel, with the attention unit where it fits."""
    engine = find_engine("network")
    default: NetworkConfig = engine.default_config(board)
    attends = replace(default, attention_rows=ATTENTION_ROWS)
    try:
        check_fits(engine, attends, board)
    except InputError:
        return default
    return attends
