"""The licence of each pinned package, as its own metadata state it.

``python -m tests.support.licences`` writes ``docs/licences.md``.  A package for other systems, which is not
installed here, keeps its row.
"""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

from sim.host.files import write_text

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "licences.md"
_ROW = re.compile(r"^\| ([\w.-]+) \| (.+) \|$", re.MULTILINE)
#: Of a package that is for other systems.
ELSEWHERE = "not installed on Linux"
_HEAD = """# Licences

Loomwork is under Apache-2.0. `constraints.txt` pins these packages; their metadata state these licences.
None of them is part of generated Verilog or of packages for a card. `python -m tests.support.licences`
writes this page.

| package | licence |
|---|---|
"""


def pinned() -> list[str]:
    """Return the names of the packages of ``constraints.txt``."""
    return re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


def rows(text: str) -> dict[str, str]:
    """Return the licence of each package of a page."""
    return {name: licence for name, licence in _ROW.findall(text) if name not in ("package", "---")}


def licence_of(package: str) -> str | None:
    """Return the licence that an installed package states; None if it is not installed."""
    try:
        metadata = importlib.metadata.metadata(package)
    except importlib.metadata.PackageNotFoundError:
        return None
    classes = [
        each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier", []) if "License ::" in each
    ]
    field = (metadata.get("License") or "").partition("\n")[0]
    found = metadata.get("License-Expression") or ", ".join(classes) or field
    return found or _first_line(package)


def _first_line(package: str) -> str:
    """Return the first words of the licence that a package carries as a file."""
    for file in importlib.metadata.files(package) or ():
        if re.match(r"(licen[cs]e|copying)", file.name, re.IGNORECASE):
            return file.read_text().strip().partition("\n")[0].partition(". ")[0]
    return "not stated"


def page(before: str) -> str:
    """Return the page; rows of packages that are not installed are those of ``before``."""
    known = rows(before)
    lines = [f"| {name} | {licence_of(name) or known.get(name, ELSEWHERE)} |" for name in pinned()]
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_text(PAGE, page(PAGE.read_text() if PAGE.exists() else ""))
