"""Pages name what there is: links lead to files, and the glossary's names are names of the code."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from docs.generated import pages
from sim.cli.main import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = [
    path for room in ("hw", "sim") for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".cpp")
]


def anchors(page):
    """Return the anchors of a page's headings, as the site makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page):
    for target, anchor in re.findall(r"\]\(([^)#]*?)(?:#([^)]*))?\)", page.read_text()):
        if "://" in target:
            continue
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), f"{target}#{anchor}"


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


BLOCK = re.compile(r"^```\w*[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^(?:\.venv/bin/)?loomwork (.*)$", re.MULTILINE)
#: Every line of a block of any page that calls the command, without its remark and what it may do without.
COMMANDS = [
    re.sub(r"\[.*?\]", "", line.split(" #")[0]).strip()
    for page in PAGES
    for block in BLOCK.findall(page.read_text())
    for line in CALL.findall(block)
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_pages_are_understood(line):
    """Each names a command, its options and as many arguments as it takes; nothing is run."""
    words, command = shlex.split(line), typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands
        command = command.commands[words.pop(0)]
    parser = command.make_parser(typer.Context(command))
    values, rest, _ = parser.parse_args(args=words)
    assert rest == []
    for parameter in command.params:
        assert not parameter.required or values.get(parameter.name) is not None, parameter.name


def test_tests_that_pages_name_are_there():
    lines = [line for page in PAGES for line in page.read_text().splitlines() if "python -m pytest" in line]
    words = {word.strip("`") for line in lines for word in line.split()}
    paths = {word for word in words if word.startswith("tests/")}
    assert len(paths) >= 6
    for path in paths:
        assert "NAME" in path or (ROOT / path.partition("::")[0]).exists(), path


def test_pages_are_made_of_commands_and_configurations():
    made = pages()
    assert "## loomwork sim\n" in made["commands.md"]
    assert "--network" in made["commands.md"]
    assert "| `lanes` |" in made["configurations.md"]
    assert made["contributing.md"].startswith("# Contributing")


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} | set(pages()) == listed
