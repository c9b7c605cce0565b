"""The program that a kernel gets: barriers, or with attention commands that overlap, checked."""

from __future__ import annotations

from hw.network.check.check import check
from hw.network.check.image import check_image
from hw.network.commands import Core
from hw.network.compile.compile import Compiled
from hw.network.config import NetworkConfig
from hw.network.program.image import encode, needs
from hw.network.program.lower import program_of
from hw.network.program.order import order
from hw.network.program.program import NetworkProgram


def program_for(compiled: Compiled, config: NetworkConfig) -> NetworkProgram:
    """Return the program of a compiled network for a kernel.

    With commands of attention each command waits only for those whose results it needs.

    Raises `InputError` as `program_of` does, and for a program beyond the kernel's limits.
    """
    program = program_of(compiled)
    needs(program, config)
    if all(step.core is not Core.ATTENTION for step in program.steps):
        return program
    ordered = order(program, config)
    check(ordered, config)
    return ordered


def image_of(program: NetworkProgram, config: NetworkConfig) -> bytes:
    """Return the image of a program for a kernel, checked; raises `InputError` as `encode` does."""
    image = encode(program, config)
    check_image(image, config)
    return image
