"""Limits that a network exceeds under any plan: refused where every plan's program is, and no sooner."""

from dataclasses import replace

import pytest

from hw.errors import InputError
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.writer import written
from hw.network.program.demand import check_demand
from hw.network.program.image import limits
from hw.network.program.lower import program_of
from tests.support.networks.quantized import ALL_KINDS, quantized, random_network
from tests.support.networks.sentences import small

#: Limits that a network's commands need, whatever its plan.
OF_COMMANDS = ("vector_taps", "scales", "tables", "exponentials", "channels", "pixels")
KERNEL = NetworkConfig(attention_rows=16)


def check(network, least):
    """A kernel with the least limits of a program is enough, and one with less of any is not."""
    # Rows of a kernel's tables are powers of two.
    exact = {name: max(2, 1 << (least[name] - 1).bit_length()) for name in OF_COMMANDS}
    config = replace(KERNEL, max_steps=least["max_steps"], **exact)
    check_demand(network, config)
    less = {name: value // 2 for name, value in exact.items() if value > 2}
    less["max_steps"] = config.max_steps - 1
    for name, value in less.items():
        with pytest.raises(InputError, match=f"^{name.removeprefix('max_')} of the program at operator"):
            check_demand(network, replace(config, **{name: value}))
    assert len(less) > 1


@pytest.mark.parametrize("seed", [4, 5, ALL_KINDS + 1, ALL_KINDS + 3])
def test_a_network_whose_values_are_whole(seed):
    network = read_network(quantized(random_network(seed)))
    compiled = compile_network(network, scratchpad_bytes=1 << 20)
    check(network, limits(program_of(compiled)))


def test_a_network_on_tokens():
    network = read_tokens(written(small()), (12,))
    program = program_of(compile_network(network, scratchpad_bytes=1 << 16))
    check(network, limits(program))
    with pytest.raises(InputError, match="attention_rows must be at least 1, as the network has attention"):
        check_demand(network, NetworkConfig())


@pytest.mark.parametrize("seed", [4, pytest.param(13, marks=pytest.mark.soak)])
def test_a_plan_that_cuts_values_needs_more_and_is_not_refused_for_it(seed):
    network = read_network(quantized(random_network(seed)))
    program = program_of(compile_network(network, scratchpad_bytes=12288))
    check_demand(network, replace(KERNEL, max_steps=len(program.steps), max_taps=512))
