"""Choice of one of many words, as a tree of multiplexers."""

from collections.abc import Sequence

from amaranth.hdl import Mux, Value


def chosen(words: Sequence[Value], index: Value) -> Value:
    """Return ``words[index]``, and anything for an index beyond them.

    A ``Switch`` over as many cases compares the index with each of them: Yosys makes twice the LUTs of it.
    """
    if len(words) == 1:
        return words[0]
    pairs = [Mux(index[0], words[min(n + 1, len(words) - 1)], words[n]) for n in range(0, len(words), 2)]
    return chosen(pairs, index[1:])
