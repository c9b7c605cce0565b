"""Processes of Python beside this one: they import the modules of this one, and none of the user's folder."""

import os
import sys
from collections.abc import Sequence


def python_command(arguments: Sequence[str], *, python: str = "") -> list[str]:
    """Return the command of an interpreter, by default this one's.

    With ``-P`` it imports nothing from the current folder, which is the user's: a folder ``sim`` or a file
    ``json.py`` in it would take the place of ours.
    """
    return [python or sys.executable, "-P", *arguments]


def module_path(*first: str) -> str:
    """Return a value of ``PYTHONPATH``: the folders ``first``, then those of this process."""
    return os.pathsep.join([*first, *(path or os.getcwd() for path in sys.path)])
