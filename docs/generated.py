"""Pages made from the project by `make docs`: the front page, every command, every configuration.

A hook of mkdocs: pages are made anew for each site, so that none of them disagrees with the code.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hw.board.files import load_board
from hw.config import config_schema
from hw.registry import ENGINES, find_engine
from sim.cli.main import app

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_ROOT = Path(__file__).resolve().parent.parent
_BOARD = "u55c"
#: Pages whose files stand one folder higher.
_FROM_ROOT = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md"}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Leave links that lead out of `docs` as text: the site has its pages and pictures alone."""
    folder = (_ROOT / "docs" / page.file.src_uri).parent

    def inside(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        if page.file.src_uri in _FROM_ROOT:
            target = target.removeprefix("docs/")
            target = "decisions.md" if target == "decisions" else target
        target = "contributing.md" if target.endswith("CONTRIBUTING.md") else target
        if (folder / target).resolve().is_relative_to(_ROOT / "docs") and target.endswith((".md", ".png")):
            return f"[{text}]({target}{anchor})"
        return text

    return _LINK.sub(inside, markdown)


def pages() -> dict[str, str]:
    """Return the text of each page that is made, by name."""
    return {
        **{page: (_ROOT / name).read_text() for page, name in _FROM_ROOT.items()},
        "commands.md": _commands(),
        "configurations.md": _configurations(),
        "decisions.md": _decisions(),
    }


def _decisions() -> str:
    lines = ["# Decisions", "", "Why things are as they are, where it would puzzle the next engineer.", ""]
    for path in sorted((_ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text().splitlines()[0].removeprefix("# ")
        lines.append(f"- [{title}](decisions/{path.name})")
    return "\n".join(lines) + "\n"


def _commands() -> str:
    parts = ["# Commands", "", "What `--help` says of each.", ""]
    for words, command in _leaves(typer.main.get_command(app), ("loomwork",)):
        with typer.Context(command, info_name=" ".join(words)) as context:
            parts += [f"## {' '.join(words)}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(parts)


def _leaves(command: Any, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        return [(words, command)]
    return [leaf for name, part in command.commands.items() for leaf in _leaves(part, (*words, name))]


def _configurations() -> str:
    board = load_board(_BOARD)
    parts = [
        "# Configurations and registers",
        "",
        "The fields of each engine's configuration file, as `loomwork schema` gives them to an editor,",
        f"with the default of the class; and the registers of the kernel in its default for {board.title}.",
        "What a board's default is otherwise, `meta.json` of its package says.",
        "",
    ]
    for name in sorted(ENGINES):
        engine = find_engine(name)
        parts += [f"## {name}", "", f"{engine.summary[0].upper()}{engine.summary[1:]}.", ""]
        parts += ["| field | default | what |", "|---|---|---|"]
        for field, facts in config_schema(engine)["properties"].items():
            default = facts.get("default")
            shown = "" if isinstance(default, (dict, list)) or default is None else f"`{default}`"
            parts.append(f"| `{field}` | {shown} | {_cell(facts.get('description', ''))} |")
        table = engine.arguments(engine.default_config(board), board)
        parts += ["", "| offset | register | bits | kind | what |", "|---|---|---|---|---|"]
        for register in (*table.registers, *table.counter_registers):
            argument = register.argument
            parts.append(
                f"| `{register.offset:#05x}` | `{argument.name}` | {argument.bits} | "
                f"{argument.kind.value} | {_cell(argument.doc)} |"
            )
        parts.append("")
    return "\n".join(parts)


def _cell(text: str) -> str:
    """Make a text fit a cell of a table: one line, names as code."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")
