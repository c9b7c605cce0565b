"""
How the project's prose reads, measured: `python -m tests.support.words [--worst N] [PATH ...]`.

Docs are Markdown without fenced code, tables and headings; an item of a list begins a new sentence. Code is
docstrings and comments of Python files, without doctests and drawings. A sentence ends at `.`, `!` or `?`;
code in backquotes and links count as one word, a list of code too. `WORDS` of `tests/test_house.py` has
the limits of `hw`, `sim` and `docs`.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# The longest sentence a reader keeps in mind in one go, in words.
LONG_WORDS = 25

_VAGUE = re.compile(r"\b(what|gives?)\b", re.IGNORECASE)
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`*]*[A-Z0-9`])")
_ABBREVIATION = re.compile(r"\b(e\.g|i\.e|et al|cf|vs|Fig|Sec|No)\.", re.IGNORECASE)
_ITEM = re.compile(r"^\s*([-*+]|\d+\.)\s+")
_WORD = re.compile(r"[A-Za-z0-9][\w'’.,%/-]*")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence, where its paragraph begins, and its length in words."""

    path: Path
    line: int
    text: str

    @property
    def words(self) -> int:
        return len(_WORD.findall(self.text))


@dataclass(frozen=True, kw_only=True)
class Prose:
    """Sentences of some files, and their measures."""

    sentences: list[Sentence] = field(default_factory=list)

    @property
    def words(self) -> int:
        return sum(sentence.words for sentence in self.sentences)

    @property
    def words_a_sentence(self) -> float:
        return self.words / max(1, len(self.sentences))

    @property
    def long_share(self) -> float:
        """The share of sentences over `LONG_WORDS`."""
        return sum(sentence.words > LONG_WORDS for sentence in self.sentences) / max(1, len(self.sentences))

    @property
    def vague_per_thousand(self) -> float:
        """How often "what" and "give", which hide a noun, stand in 1,000 words."""
        return 1000 * sum(len(_VAGUE.findall(s.text)) for s in self.sentences) / max(1, self.words)

    def worst(self, count: int) -> list[Sentence]:
        """The longest sentences, and those with a vague word."""
        poor = [s for s in self.sentences if s.words > LONG_WORDS or _VAGUE.search(s.text)]
        return sorted(poor, key=lambda s: -s.words)[:count]


def prose_of(paths: Iterable[Path]) -> Prose:
    """Prose of the files, and of the Markdown and Python files in the folders, among `paths`."""
    sentences: list[Sentence] = []
    for path in paths:
        files = sorted(p for p in path.rglob("*") if p.suffix in {".md", ".py"}) if path.is_dir() else [path]
        for file in files:
            text = file.read_text()
            paragraphs = _markdown(text) if file.suffix == ".md" else _python(text)
            sentences += [
                Sentence(path=file, line=line, text=sentence)
                for line, paragraph in paragraphs
                for sentence in _sentences(paragraph)
            ]
    return Prose(sentences=sentences)


def _sentences(paragraph: str) -> Iterator[str]:
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    # With a capital, as it may begin a sentence.
    plain = re.sub(r"``.+?``|`[^`]*`", "Code", plain)
    plain = re.sub(r"Code(?:,? (?:and |or )?Code)+", "Code", plain)
    plain = _ABBREVIATION.sub(lambda found: found.group(0).replace(".", ""), plain)
    for sentence in _END.split(" ".join(plain.split())):
        # A label or a fragment of a drawing is no sentence.
        if len(_WORD.findall(sentence)) >= 3:
            yield sentence


def _paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    begin, held = 0, ""
    for number, line in lines:
        if not line.strip() or _ITEM.match(line):
            if held:
                yield begin, held
            begin, held = number, _ITEM.sub("", line).strip()
        else:
            begin, held = (begin, f"{held} {line.strip()}") if held else (number, line.strip())
    if held:
        yield begin, held


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    fenced = listed = False
    kept = []
    for number, line in enumerate(text.splitlines(), 1):
        listed = bool(_ITEM.match(line)) or (listed and (not line.strip() or line.startswith(" ")))
        if line.lstrip().startswith("```"):
            fenced = not fenced
            kept.append((number, ""))
        elif fenced or line.lstrip().startswith(("|", "#", "<", "!!!")):
            kept.append((number, ""))
        elif line.startswith("    ") and not listed and not (kept and kept[-1][1]):
            kept.append((number, ""))  # a block of code
        else:
            kept.append((number, line.lstrip("> ")))
    return _paragraphs(kept)


def _python(text: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            if docstring:
                raw = ast.get_docstring(node, clean=False) or ""
                blank = raw[: len(raw) - len(raw.lstrip())].count("\n")
                yield from _paragraphs(_docstring(docstring, node.body[0].lineno + blank))
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("#!", "# type:", "# noqa")):
            beside_code = token.line[: token.start[1]].strip()
            if comments and token.start[0] > comments[-1][0] + 1:
                comments.append((0, ""))
            entry = (token.start[0], token.string.lstrip("#: "))
            comments += [(0, ""), entry, (0, "")] if beside_code else [entry]
    yield from _paragraphs(comments)


def _docstring(docstring: str, first: int) -> Iterator[tuple[int, str]]:
    drawing = example = False
    for number, line in enumerate(docstring.splitlines(), first):
        # An example with its output ends at an empty line.
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        section = re.fullmatch(r"\s*-{3,}\s*", line) is not None
        # Drawings are indented after `::`, or have characters of no sentence.
        drawing = drawing and (not line.strip() or line.startswith("    "))
        odd = (
            section
            or example
            or line.lstrip().startswith("|")
            or re.search(r"-->|--\+|\+--|──|  {3,}\S", line)
        )
        yield number, "" if drawing or odd else line
        drawing = drawing or line.rstrip().endswith("::")


def main(arguments: list[str]) -> None:
    """Print measures of each path, and the worst sentences."""
    worst = 0
    if arguments[:1] == ["--worst"]:
        worst, arguments = int(arguments[1]), arguments[2:]
    for name in arguments or ["docs", "README.md", "hw", "sim"]:
        prose = prose_of([Path(name)])
        print(
            f"{name}: {len(prose.sentences)} sentences, {prose.words_a_sentence:.1f} words each, "
            f"{100 * prose.long_share:.1f} % over {LONG_WORDS}, vague {prose.vague_per_thousand:.1f} in 1,000"
        )
        for sentence in prose.worst(worst):
            print(f"  {sentence.path}:{sentence.line}: ({sentence.words}) {sentence.text}")


if __name__ == "__main__":
    main(sys.argv[1:])
