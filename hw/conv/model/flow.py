"""Words on their way from one unit to the next, in pieces of an even pace."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import NamedTuple, Protocol


class WordSpan(NamedTuple):
    """``words`` in a row: the earliest cycles of the first and of the last of them."""

    words: int
    first: int
    last: int


class Source(Protocol):
    """A producer of the words of a job, in order."""

    def offer(self, most: int) -> WordSpan:
        """Return the next piece, of up to ``most`` words."""

    def accept(self, piece: WordSpan) -> None:
        """Accept the piece, in the cycles in which its words left."""


class Departures:
    """The cycles in which the words of a job passed a place."""

    def __init__(self) -> None:
        self._ends: list[int] = []  # words up to the end of each piece
        self._pieces: list[WordSpan] = []
        self.words = 0

    def add(self, piece: WordSpan) -> None:
        """Append a piece."""
        self.words += piece.words
        self._ends.append(self.words)
        self._pieces.append(piece)

    def at(self, word: int) -> int:
        """Return the cycle of a word that passed; 0 for one before the first."""
        if word < 0:
            return 0
        n = bisect_left(self._ends, word + 1)
        piece = self._pieces[n]
        behind = self._ends[n] - 1 - word
        if not behind:
            return piece.last
        return piece.last - behind * (piece.last - piece.first) // (piece.words - 1)

    def end(self, word: int) -> int:
        """Return the words up to the end of the piece that a word passed in."""
        return self._ends[bisect_left(self._ends, word + 1)]


class Queue:
    """A queue of ``places`` words, for one source after another."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._left = Departures()
        self._arrived = 0  # the last word
        self._offered = WordSpan(0, 0, 0)
        self._source: Source

    def of(self, source: Source) -> Queue:
        """Switch to another source; returns the queue."""
        self._source = source
        return self

    def offer(self, most: int) -> WordSpan:
        """Return the next piece, of up to ``most`` words."""
        self._offered = self._source.offer(most)
        return self._offered

    def accept(self, piece: WordSpan) -> None:
        """Accept a piece that left; each word had arrived once the word ``places`` before it left."""
        self._left.add(piece)
        departed = self._left.words - self._places - 1
        first = max(self._offered.first, self._left.at(departed - piece.words + 1) + 1, self._arrived + 1)
        self._arrived = max(self._offered.last, self._left.at(departed) + 1, first + piece.words - 1)
        self._source.accept(WordSpan(piece.words, first, self._arrived))


def paced(piece: WordSpan, first: int, *, pace: float = 1) -> WordSpan:
    """Return when a piece passes a place that is free from ``first`` on and takes ``pace`` cycles a word."""
    start = max(piece.first, first)
    return WordSpan(piece.words, start, max(piece.last, start + math.ceil((piece.words - 1) * pace)))


def delayed(piece: WordSpan, cycles: int) -> WordSpan:
    """Return a piece delayed by ``cycles``."""
    return WordSpan(piece.words, piece.first + cycles, piece.last + cycles)
