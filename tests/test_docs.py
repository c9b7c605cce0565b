"""Pages name what there is: links lead to files, and the glossary's names are names of the code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [
    path for room in ("hw", "sim") for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".cpp")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_names_of_the_glossary_are_in_the_code():
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in SOURCES)))
    files = {f"{path.relative_to(ROOT)}/" for path in SOURCES}
    rows = re.findall(
        r"^\| (?!term|---).*\| (.*?) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(names) > 80
    for name in names:
        if "/" in name or name.startswith(("hw.", "sim.")):
            place = name.replace(".", "/")
            assert any(f"/{place}/" in f"/{path}".replace(".py/", "/") for path in files), name
        else:
            assert words.issuperset(re.findall(r"\w+", name)), name
