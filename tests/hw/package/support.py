"""Packages to test, and a way to run Tcl with a stand-in for Vivado."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from examples.vadd.engine import VaddConfig, VaddEngine
from hw.board import load_board
from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.verilog import generate

STUBS = Path(__file__).with_name("vivado.tcl")
#: Stand-ins for the libraries that host scripts use.
FAKES = Path(__file__).with_name("fakes")

#: What ends strings, comments and substitutions somewhere.
NASTY = 'a "quoted" [exec false] $x {brace \\ ; # /* */ é %s'


@functools.cache
def make_design(board):
    """Generate vadd for a board."""
    return generate(VaddEngine(), VaddConfig(), load_board(board))


def with_table(design, *arguments):
    """Return the design as if it had other arguments; for what is written from the table alone."""
    return dataclasses.replace(design, table=ArgumentTable(arguments))


def nasty(design):
    """Return the design with documentation that must be quoted."""
    return with_table(
        design,
        Argument(name="n", kind=ArgumentKind.SCALAR, doc=NASTY),
        Argument(name="p", kind=ArgumentKind.POINTER, port="gmem0", doc=NASTY),
        Argument(name="q", kind=ArgumentKind.POINTER, port="gmem1", doc=NASTY),
        Argument(name="c", kind=ArgumentKind.COUNTER, doc=NASTY),
    )


def build_xrt(directory):
    """Build the stand-in for XRT's C library; gives its directory."""
    target = directory / "libxrt_coreutil.so.2"
    # A process that has loaded it by its path finds it by its name.
    options = ("-shared", "-fPIC", "-Wall", "-Werror", f"-Wl,-soname,{target.name}")
    subprocess.run(["gcc", *options, "-o", target, FAKES / "xrt_coreutil.c"], check=True)
    return directory


def write_host(files, directory):
    """Write the files of a package that its host script needs."""
    for name, text in files.items():
        if name in ("host.py", "meta.json") or name.startswith("loomwork_host/"):
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_text(text)


class TclError(AssertionError):
    """A script stopped with an error."""


def run_tcl(script, directory, *arguments, **settings):
    """Run ``script`` in ``directory`` as ``vivado -mode batch`` would and give the calls it made.

    ``settings`` are variables of the stand-in.
    """
    record = directory / "calls.tsv"
    record.unlink(missing_ok=True)
    words = " ".join(f"{{{word}}}" for word in arguments)
    driver = "\n".join(
        [
            f"cd {{{directory}}}",
            f"set record {{{record}}}",
            f"set argv [list {words}]",
            f"set argc {len(arguments)}",
            f"source {{{STUBS}}}",
            *(f"set {name} {{{value}}}" for name, value in settings.items()),
            f"source {{{script}}}",
        ]
    )
    if tclsh := shutil.which("tclsh"):
        run = subprocess.run([tclsh], input=driver + "\nexit 0", capture_output=True, text=True, check=False)
        # tclsh goes on after an error when it reads commands from a pipe, but says so.
        if run.stderr.strip():
            raise TclError(run.stderr.strip())
    else:
        _run_in_tkinter(driver)
    if not record.exists():
        return []
    return [line.split("\t") for line in record.read_text().splitlines()]


def _run_in_tkinter(driver):
    try:
        import tkinter
    except ImportError:
        pytest.fail(
            "neither tclsh nor Python's tkinter is on this machine: install tcl to check the Tcl scripts"
        )
    before = os.getcwd()
    try:
        tkinter.Tcl().eval(driver)
    except tkinter.TclError as error:
        raise TclError(str(error)) from error
    finally:
        os.chdir(before)  # the script's `cd` is this process's, too
