"""Options of commands that take an engine's own files: the engine named in the arguments declares them."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

from hw.registry import known_engines
from sim.cli.builds import engine_of

#: Parameters of a command, of a class private to `typer`.
Parameters = list[Any]


class InputCommand(typer.core.TyperCommand):
    """A command with an option for each input file of an engine; `files_of` returns the values."""

    #: Attributes of `sim.run.adapter.EngineAdapter` that declare the options.
    declared: tuple[str, ...] = ("input_files",)
    #: Options that the command needs at the end of its example lines.
    example_end = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Choose the options before the arguments are parsed."""
        ctx.obj = {"parameters": self._parameters(args), "engines": _engines_of(args)}
        return list(super().parse_args(ctx, args))

    def get_params(self, ctx: Any) -> Parameters:
        """Return the options of the engine beside those of all engines."""
        chosen = (ctx.obj or {}).get("parameters")
        own = self._parameters(()) if chosen is None else chosen
        return [*super().get_params(ctx), *own]

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the tensors and columns of the engine named in the arguments, and example lines."""
        from sim.run.run import find_adapter

        engines = (ctx.obj or {}).get("engines", ())
        if len(engines) != 1:
            command = ctx.command_path
            formatter.write(
                f"\n{command} ENGINE --help lists the engine's tensors and columns, with examples.\n"
            )
            return
        adapter = find_adapter(engines[0])
        for kind in adapter.input_files:
            if kind.content:
                noun = "Columns" if kind.suffix == ".csv" else "Tensors"
                with formatter.section(f"{noun} of --{kind.option}"):
                    formatter.write_dl(list(kind.content.items()))
        with formatter.section("Examples"):
            first = [f"--{kind.option} in{kind.suffix}" for kind in adapter.input_files[:1]]
            for words in adapter.examples or first:
                # Not folded: a line to be copied.
                formatter.write(f"  {ctx.command_path} {engines[0]} {words}{self.example_end}\n")

    def invoke(self, ctx: Any) -> Any:
        """Part the engine's options from the others, which are the function's parameters."""
        own = [parameter.name for parameter in ctx.obj["parameters"]]
        ctx.obj["files"] = {name: path for name in own if (path := ctx.params.pop(name))}
        return super().invoke(ctx)

    def _parameters(self, args: Iterable[str]) -> Parameters:
        """Return the options of the engine named among the arguments; without a name those of all engines.

        An option that only another engine has is added, so that it is refused by the reason.
        """
        engines = known_engines()
        found = self._options(_engines_of(args) or engines)
        known = {*found, "help", *(text[2:] for parameter in self.params for text in parameter.opts)}
        asked = {arg.partition("=")[0][2:] for arg in args if arg.startswith("--")}
        if asked - known:
            found |= {name: text for name, text in self._options(engines).items() if name in asked - known}
        return _parameters_of(found)

    def _options(self, engines: Iterable[str]) -> dict[str, str]:
        from sim.run.run import find_adapter

        return {
            kind.option: kind.help
            for name in engines
            for declared in self.declared
            for kind in getattr(find_adapter(name), declared)
        }


class RunCommand(InputCommand):
    """The same, with an option for each further output file."""

    declared = ("input_files", "output_files")


class LaunchCommand(InputCommand):
    """The same, of a command that needs a folder to write."""

    example_end = " --output card"


def _engines_of(args: Iterable[str]) -> list[str]:
    """Return the engines named among arguments, by their names or else by build folders."""
    engines, words = known_engines(), list(args)
    named = [word for word in words if word in engines]
    return named or [name for word in words if (name := engine_of(word)) in engines]


def files_of(ctx: typer.Context) -> Mapping[str, Path]:
    """Return the files given to an `InputCommand`, by their options."""
    found: Mapping[str, Path] = ctx.obj["files"]
    return found


def named_files(ctx: typer.Context) -> Iterator[tuple[str, Path]]:
    """Return the same files, by their options as a user writes them."""
    return ((f"--{name}", path) for name, path in files_of(ctx).items())


def _parameters_of(options: Mapping[str, str]) -> Parameters:
    """Make options for paths, by their names and help texts."""

    def command(**paths: Path | None) -> None: ...

    kinds = {
        name: inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=typer.Option(None, f"--{name}", help=text),
            annotation=Path | None,
        )
        for name, text in options.items()
    }
    # Typer makes options from the signature of a function.
    command.__dict__["__signature__"] = inspect.Signature(list(kinds.values()))
    command.__annotations__ = {name: kind.annotation for name, kind in kinds.items()}
    app = typer.Typer(add_completion=False)
    app.command()(command)
    return list(typer.main.get_command(app).params)
