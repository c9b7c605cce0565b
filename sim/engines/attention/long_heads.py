"""Predicted bytes over compulsory ones of long heads, on the default engine of a U55C.

``python -m sim.engines.attention.long_heads`` prints the table of ``docs/attention-figures.md``.
"""

from collections.abc import Iterator, Sequence

from hw.attention.driver.workload import AttentionWorkload
from hw.attention.engine import AttentionEngine
from hw.board import load_board

TOKENS = (8192, 16384, 32768, 65536)
SIZES = (64, 128)
BOARD = "u55c"


def over_compulsory(*, tokens: int, size: int, causal: bool) -> float:
    """Return bytes over compulsory ones of one head of ``tokens`` queries and keys of ``size``."""
    engine, board = AttentionEngine(), load_board(BOARD)
    workload = AttentionWorkload(
        heads=1, queries=(tokens,), keys=(tokens,), query_size=size, value_size=size, causal=causal
    )
    prediction = engine.predict(workload, engine.default_config(board), board)
    return prediction.moved_bytes / prediction.compulsory_bytes


def table(lengths: Sequence[int] = TOKENS) -> Iterator[str]:
    """Return the lines of the table of these lengths."""
    columns = [(size, causal) for size in SIZES for causal in (False, True)]
    yield "| tokens | " + " | ".join(f"D = {size}{', causal' * causal}" for size, causal in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for tokens in lengths:
        ratios = (over_compulsory(tokens=tokens, size=size, causal=causal) for size, causal in columns)
        yield f"| {tokens:,} | " + " | ".join(f"{ratio:,.0f}" for ratio in ratios) + " |"


if __name__ == "__main__":
    for line in table():
        print(line)
