"""Drawings in pages: fenced text with lines and arrows becomes SVG on the site, and stays text elsewhere.

The grid of characters is the layout. Lines and arrowheads become paths. Text at either end of an arrow
becomes a box, other text a label. Colours are those of the page, light or dark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

_BLOCK = re.compile(r"^```(?:text)?\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
#: Directions in which each character's lines leave the centre of its cell.
_LINES = {
    "─": "ew", "│": "ns", "┌": "es", "┐": "ws", "└": "ne", "┘": "nw",
    "├": "nes", "┤": "nws", "┬": "ews", "┴": "new", "┼": "nesw",
}  # fmt: skip
_HEADS = {"►": "e", "◄": "w", "▼": "s", "▲": "n"}
_STEPS = {"n": (0, -1), "s": (0, 1), "e": (1, 0), "w": (-1, 0)}
_OPPOSITE = {"n": "s", "s": "n", "e": "w", "w": "e"}
#: Size of a cell, and of the text in it.
_WIDE, _HIGH, _TEXT = 8.0, 20.0, 13.0


@dataclass(frozen=True, kw_only=True)
class _Run:
    """Text between lines or two spaces, from one column to another."""

    row: int
    first: int
    text: str

    @property
    def end(self) -> int:
        return self.first + len(self.text)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the drawings of a page by SVG, as a hook of mkdocs."""
    return _BLOCK.sub(
        lambda block: f"\n<div>{svg(block[1])}</div>\n\n" if is_drawing(block[1]) else block[0], markdown
    )


def is_drawing(text: str) -> bool:
    """Whether a block of text has arrows and lines."""
    return any(head in text for head in _HEADS) and "─" in text


def svg(text: str) -> str:
    """Draw a block of text."""
    rows = text.rstrip("\n").split("\n")
    indent = min(len(row) - len(row.lstrip()) for row in rows if row.strip())
    rows = [row[indent:] for row in rows]
    runs = list(_runs(rows))
    boxes = [run for run in runs if _is_box(rows, run)]
    width, height = _WIDE * (max(map(len, rows)) + 2), _HIGH * (len(rows) + 1)
    title = escape(", ".join(run.text for run in boxes))
    attributes = f'viewBox="0 0 {width:g} {height:g}" style="max-width:{width:g}px"'
    parts = [
        f'<svg role="img" {attributes} xmlns="http://www.w3.org/2000/svg"><title>{title}</title>',
        f'<path d="{"".join(_paths(rows))}" fill="none" stroke="currentColor" stroke-width="1.2"/>',
        f'<path d="{"".join(_arrowheads(rows))}" fill="currentColor"/>',
    ]
    for run in boxes:
        x, y = _at(run.first, run.row)
        parts.append(
            f'<rect x="{x - _WIDE:g}" y="{y - 0.45 * _HIGH:g}" width="{_WIDE * (len(run.text) + 1):g}" '
            f'height="{0.9 * _HIGH:g}" rx="4" fill="currentColor" fill-opacity="0.08" stroke="currentColor"/>'
        )
    for run in runs:
        x, y = _at(run.first, run.row)
        opacity = 1 if run in boxes else 0.75
        parts.append(
            f'<text x="{x - _WIDE / 2:g}" y="{y + _TEXT / 3:g}" textLength="{_WIDE * len(run.text):g}" '
            f'lengthAdjust="spacingAndGlyphs" font-family="monospace" font-size="{_TEXT:g}" '
            f'fill="currentColor" opacity="{opacity}">{escape(run.text)}</text>'
        )
    return "".join((*parts, "</svg>"))


def _at(column: int, row: int) -> tuple[float, float]:
    """Return the centre of a cell."""
    return _WIDE * (column + 1.5), _HIGH * (row + 1)


def _cell(rows: list[str], column: int, row: int) -> str:
    inside = 0 <= row < len(rows) and 0 <= column < len(rows[row])
    return rows[row][column] if inside else " "


def _runs(rows: list[str]) -> Iterator[_Run]:
    marks = "".join((*_LINES, *_HEADS))
    for number, row in enumerate(rows):
        for found in re.finditer(rf"[^\s{marks}]+(?: [^\s{marks}]+)*", row):
            yield _Run(row=number, first=found.start(), text=found[0])


def _is_box(rows: list[str], run: _Run) -> bool:
    """Whether an arrow or a line ends at a run, which does not stand on a line as its label."""
    before = _beside(rows, run.first - 1, run.row, -1)
    behind = _beside(rows, run.end, run.row, 1)
    if "►" in before or "◄" in behind:
        return True
    if behind in ("─", "►") or before in ("─", "◄"):
        return not (before in _LINES and behind in _LINES)
    columns = range(run.first, run.end)
    above = {_cell(rows, column, run.row - 1) for column in columns}
    below = {_cell(rows, column, run.row + 1) for column in columns}
    return bool(above & {"▼", "│", "▲"}) or bool(below & {"▲", "│", "▼"})


def _beside(rows: list[str], column: int, row: int, step: int) -> str:
    """Return the character beside a run, a space in between or none."""
    found = _cell(rows, column, row)
    return _cell(rows, column + step, row) if found == " " else found


def _paths(rows: list[str]) -> Iterator[str]:
    for row, line in enumerate(rows):
        for column, mark in enumerate(line):
            x, y = _at(column, row)
            for way in _LINES.get(mark, _OPPOSITE.get(_HEADS.get(mark, ""), "")):
                dx, dy = _STEPS[way]
                yield f"M{x:g} {y:g}L{x + dx * _WIDE / 2:g} {y + dy * _HIGH / 2:g}"


def _arrowheads(rows: list[str]) -> Iterator[str]:
    for row, line in enumerate(rows):
        for column, mark in enumerate(line):
            if mark in _HEADS:
                x, y = _at(column, row)
                dx, dy = _STEPS[_HEADS[mark]]
                tip = f"M{x + 5 * dx:g} {y + 6 * dy:g}"
                yield f"{tip}L{x - 3 * dx - 4 * dy:g} {y - 4 * dx - 2 * dy:g}"
                yield f"L{x - 3 * dx + 4 * dy:g} {y + 4 * dx - 2 * dy:g}Z"
