"""The ``loomwork`` command: options in, one function call, a table out.

Every import that costs time is inside the command that needs it: ``--help`` and a cached simulation start
at once.
"""

import importlib.util
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from hw.errors import InputError, LoomworkError, nearest
from hw.registry import ENGINES, known_engines, simulation_side
from sim.cli.builds import choose
from sim.cli.cache import app as cache
from sim.cli.engine_files import InputCommand, LaunchCommand, RunCommand, named_files
from sim.cli.lists import boards, engines, schema
from sim.cli.options import (
    DEFAULT_BOARD,
    DEFAULT_ENGINE,
    EXIT_INTERRUPT,
    EXIT_TERMINATED,
    EXIT_USER,
    EngineArgument,
    EngineOption,
    LaunchArgument,
    MemoryOption,
    ReportOption,
    ResultsOption,
    TargetArgument,
    exit_unless,
    refuse_given,
    setup,
    writable,
)
from sim.cli.report import report
from sim.cli.sweep import sweep
from sim.host import progress
from sim.host.options import (
    EXPLORE,
    HARDWARE,
    LISTS,
    MAINTENANCE,
    PANELS,
    SIMULATE,
    BoardOption,
    ConfigOption,
    DirectoryOption,
    SeedOption,
)
from sim.host.process import Terminated


def _ended(reason: str, status: int = EXIT_USER) -> typer.Exit:
    """Print why the command ends, and return the exception that ends it."""
    print(f"loomwork: {reason}", file=sys.stderr)
    return typer.Exit(status)


class _CommandGroup(typer.core.TyperGroup):
    """Turns errors of the user into one line and an exit status, and Ctrl-C or SIGTERM into a clean end."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under the titles of their panels."""
        for panel in PANELS:
            commands = ((name, self.commands[name]) for name in self.list_commands(ctx))
            found = [each for each in commands if getattr(each[1], "rich_help_panel", None) == panel]
            limit = formatter.width - 6 - max(len(name) for name, _ in found)
            with formatter.section(panel):
                formatter.write_dl([(name, command.get_short_help_str(limit)) for name, command in found])

    def invoke(self, ctx: Any) -> Any:
        try:
            # In a log no command is silent; on a terminal slow work has lines of its own.
            if sys.stderr.isatty():
                return super().invoke(ctx)
            with progress.ProgressLine("Working", first_seconds=progress.SILENT_SECONDS):
                return super().invoke(ctx)
        except typer.BadParameter as error:
            wrong, told, choices = error.message.partition(" is not one of ")
            if told and (close := nearest(wrong.split("'")[-2], choices.split("'")[1::2])):
                error.message = f"{error.message.rstrip('.')}. Did you mean {close!r}?"
            raise
        except LoomworkError as error:
            raise _ended(str(error)) from error
        except ModuleNotFoundError as error:
            from sim.host.extras import extra_of

            if (extra := extra_of(error.name or "")) is None:
                raise
            raise _ended(f"{error.name} is missing: pip install 'loomwork[{extra}]'") from error
        except KeyboardInterrupt as error:
            print(file=sys.stderr)
            raise _ended("interrupted", EXIT_INTERRUPT) from error
        except Terminated as error:
            print(file=sys.stderr)
            raise _ended("terminated", EXIT_TERMINATED) from error
        except BrokenPipeError:
            raise  # whoever read has enough: Typer's to end
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            raise _ended(f"{place}{error.strerror or error}") from error
        except MemoryError as error:
            raise _ended("this machine has too little memory for it") from error


app = typer.Typer(
    cls=_CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"loomwork {version('loomwork')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Say the version and end.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Generate FPGA accelerators and prove them bit for bit by co-simulation."""


@app.command(rich_help_panel=HARDWARE)
def verilog(
    ctx: typer.Context,
    board: BoardOption = DEFAULT_BOARD,
    engine: EngineOption = DEFAULT_ENGINE,
    config: ConfigOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Directory to write [build/verilog/ENGINE-BOARD or CORE]."),
    ] = None,
    lint: Annotated[bool, typer.Option("--lint", help="Lint it with Verilator, all warnings on.")] = False,
    core: Annotated[
        str | None,
        typer.Option("--core", help="One core alone: attention, conv, read-dma or write-dma."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the core's module [loomwork_CORE_core].")
    ] = None,
) -> None:
    """Write an engine's Verilog and everything Vitis or Vivado needs with it, or one core as a module."""
    from sim.cli.verilog import write_core, write_kernel

    if core is not None:
        refuse_given(ctx, "board", "engine", legal="left out with --core: a core is the same on every board")
        exit_unless(write_core(core, config, output, name=name, lint=lint))
        return
    refuse_given(ctx, "name", legal="left out without --core")
    exit_unless(write_kernel(*setup(engine, board, config), output, lint=lint))


@app.command(cls=RunCommand, rich_help_panel=SIMULATE)
def sim(
    ctx: typer.Context,
    engine: TargetArgument,
    output: ResultsOption = None,
    board: BoardOption = DEFAULT_BOARD,
    config: ConfigOption = None,
    report: ReportOption = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Every access to the host's memory, .csv.")
    ] = None,
    waves: Annotated[bool, typer.Option("--waves", help="Record waveforms beside the output.")] = False,
    seed: SeedOption = 0,
    memory: MemoryOption = "model",
    backend: Annotated[Literal["rtl", "golden"], typer.Option("--backend", help="What computes.")] = "rtl",
    no_data: Annotated[
        bool, typer.Option("--no-data", help="Leave out gates that only compute: exact cycles, no results.")
    ] = False,
) -> None:
    """Run an engine's gates on tensors and compare every output bit with the golden model."""
    from sim.cli.simulate import simulate

    written = (("--output", output), ("--report", report), ("--trace", trace))
    chosen = choose(ctx, engine, board, config, *named_files(ctx), *written)
    exit_unless(
        simulate(
            chosen.target,
            files=chosen.files,
            output_path=output,
            report_path=report,
            trace_path=trace,
            waves=waves,
            seed=seed,
            memory_mode=memory,
            backend=backend,
            control_only=no_data,
        )
    )


@app.command(cls=InputCommand, rich_help_panel=SIMULATE)
def predict(
    ctx: typer.Context,
    engine: TargetArgument,
    board: BoardOption = DEFAULT_BOARD,
    config: ConfigOption = None,
    report: Annotated[Path | None, typer.Option("--report", help="Prediction to write, .json.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Predict cycles, bytes and rate of a launch, and its roofline; nothing is built or simulated."""
    from sim.cli.predict import run_predict

    chosen = choose(ctx, engine, board, config, *named_files(ctx), ("--report", report))
    run_predict(chosen.target, chosen.files, report, seed=seed)


@app.command(cls=LaunchCommand, rich_help_panel=HARDWARE)
def launch(
    ctx: typer.Context,
    engine: TargetArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Launch folder to write.")],
    board: BoardOption = DEFAULT_BOARD,
    config: ConfigOption = None,
    seed: SeedOption = 0,
) -> None:
    """Write a launch for a card: buffers, registers and golden results, for host.py of the package."""
    from sim.cli.launch import write

    chosen = choose(ctx, engine, board, config)
    write(chosen.target, chosen.board_file, chosen.files, output, seed=seed)


@app.command(rich_help_panel=HARDWARE)
def replay(
    launch: LaunchArgument,
    memory: MemoryOption = "model",
    seed: SeedOption = 0,
    waves: Annotated[bool, typer.Option("--waves", help="Record waveforms beside the folder.")] = False,
) -> None:
    """Simulate a launch folder as host.py runs it on a card; the results stay in the folder."""
    from sim.cli.launch import run_replay

    run_replay(launch, memory_mode=memory, seed=seed, waves=waves)


@app.command(rich_help_panel=HARDWARE)
def verify(launch: LaunchArgument, output: ResultsOption = None, report: ReportOption = None) -> None:
    """Compare the results of a launch folder, of a card or a replay, with its golden results bit for bit."""
    from sim.cli.launch import run_verify

    exit_unless(run_verify(launch, output_path=output, report_path=report))


app.command(rich_help_panel=SIMULATE)(report)
for listing in (boards, engines, schema):
    app.command(rich_help_panel=LISTS)(listing)


@app.command(rich_help_panel=HARDWARE)
def resources(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ENGINE] [CONFIGS]...",
            help="Engine name, then YAML files of it, any number; the board's default without any.",
            show_default=False,
        ),
    ] = None,
    engine: EngineOption = DEFAULT_ENGINE,
    board: BoardOption = DEFAULT_BOARD,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Counts to write, .json.", callback=writable)
    ] = None,
) -> None:
    """Count an engine's cells with Yosys and say whether it fits a board; minutes a size, once."""
    from sim.cli.resources import run_resources
    from sim.host.paths import check_distinct

    configs = names or []
    known = known_engines() if configs else {}
    if configs and configs[0] in known:
        engine, *configs = configs
    elif configs and not (Path(configs[0]).suffix or Path(configs[0]).exists()):
        raise InputError("engine", configs[0], f"one of {', '.join(sorted(known))}, or a YAML file")
    paths: list[Path | None] = [Path(config) for config in configs] or [None]
    for path in paths:
        check_distinct(("configs", path), ("--output", output))
    found = [(path.stem if path else "default", *setup(engine, board, path)) for path in paths]
    _, chosen, on, _ = found[0]
    run_resources(chosen, on, [(name, config) for name, _, _, config in found], output)


@app.command(rich_help_panel=HARDWARE)
def timing(
    engine: EngineArgument,
    board: BoardOption = DEFAULT_BOARD,
    config: ConfigOption = None,
    worst: Annotated[int, typer.Option("--worst", min=1, help="Registers whose slowest path is shown.")] = 10,
    route: Annotated[
        int, typer.Option("--route", min=0, help="Worst blocks to place and route for another family.")
    ] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Estimate to write, .json.", callback=writable)
    ] = None,
) -> None:
    """Estimate which paths of an engine take longer than the board's clock allows; minutes, once."""
    from sim.cli.timing import run_timing

    run_timing(*setup(engine, board, config, ("--output", output)), worst, route, output)


@app.command(rich_help_panel=MAINTENANCE)
def doctor() -> None:
    """Check the machine: each tool, and how to repair a missing one."""
    from sim.build.doctor import examine, print_findings

    findings = examine()
    print_findings(findings)
    exit_unless(all(finding.ok for finding in findings if finding.required))


@app.command(rich_help_panel=SIMULATE)
def demo(
    board: BoardOption = DEFAULT_BOARD,
    output: DirectoryOption = Path("build/demo"),
    waves: Annotated[
        bool, typer.Option("--waves", help="Record waveforms of every launch; slow and large.")
    ] = False,
) -> None:
    """Run every engine's real workload through its generated gates."""
    from sim.host.paths import check_directory

    check_directory("--output", output)
    from sim.run.demo import demo as run_demo

    exit_unless(run_demo(board, output, waves=waves))


@app.command(rich_help_panel=MAINTENANCE)
def calibrate() -> None:
    """Measure the memory models against published figures."""
    from sim.calibration.calibrate import calibrate as run_calibrate

    exit_unless(run_calibrate())


app.command(rich_help_panel=EXPLORE)(sweep)
app.add_typer(cache, name="cache", rich_help_panel=MAINTENANCE)
compare = typer.Typer(no_args_is_help=True, help="Compare with other work, like with like.")
app.add_typer(compare, name="compare", rich_help_panel=EXPLORE)
# Engines add commands: `register` of the module `commands` of their simulation side.
for name in ENGINES:
    if importlib.util.find_spec(f"{simulation_side(name)}.commands"):
        importlib.import_module(f"{simulation_side(name)}.commands").register(app, compare)


def main() -> None:
    """Run the command line."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller; a file opened now would take its place
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text
    status: Any = 0
    try:
        app(prog_name="loomwork")
    except SystemExit as ended:
        status = ended.code
        warnings.simplefilter("ignore")  # that gates were left unfinished is no news after an error
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not status:
            print(f"loomwork: standard output must be writable ({error.strerror})", file=sys.stderr)
            status = EXIT_USER
    sys.exit(status)


if __name__ == "__main__":
    main()
