"""The golden models of commands and of operators are equal on transformers."""

import numpy as np
import pytest

from hw.network.commands import AttentionCommand, VectorCommand, VectorKind
from hw.network.compile.compile import compile_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.quantize import measure
from hw.network.graph.transformer.rule import Rule
from sim.golden.network import execute
from sim.golden.program import run
from tests.support.networks.sentences import ROWS, Size, model, sentences, shaped

SIZE = Size(channels=96, heads=3, inner=192)


def compiled(source, segments, **options):
    network = read_tokens(source, segments)
    return compile_network(network, scratchpad_bytes=1 << 20, **options)


def small(*forms, size=SIZE):
    return measure(model(*forms, size=size), sentences(3), longest=size.positions, name="small").file(Rule())


def check(made, seed=0):
    network = made.network
    (name,) = network.inputs
    ids = np.random.default_rng(seed).integers(0, ROWS, network.values[name].shape)
    found, wanted = run(made, {name: ids}), execute(network, {name: ids})
    assert found
    for output, elements in found.items():
        assert np.array_equal(elements, wanted[output].reshape(elements.shape))


@pytest.mark.parametrize(
    ("forms", "segments"),
    [(("gelu",), (17,)), (("tanh", "before", "causal", "split"), (9, 1, 16)), (("gelu",), (3, 40))],
)
def test_commands_equal_operators(forms, segments):
    check(compiled(small(*forms), segments))


def test_operands_of_attention_are_made_head_by_head():
    """So that the first head is complete after a few column tiles."""
    commands = [each for some in compiled(small("gelu"), (20,)).lowered.commands for each in some]
    first = next(n for n, each in enumerate(commands) if isinstance(each, AttentionCommand))
    products, heads = commands[first - 5 : first], commands[first : first + 3]
    base = products[0].target.base
    assert [each.target.base - base for each in products] == [0, 4, 8, 12, 16]  # 288 columns
    assert [each.target.granules for each in products] == [4, 4, 4, 4, 2]
    granules = SIZE.channels // SIZE.heads // 16
    for n, each in enumerate(heads):
        starts = [tensor.base - base for tensor in (each.q, each.k, each.v)]
        assert starts == [granules * (3 * n + at) for at in range(3)]


def test_many_segments_have_commands_of_several_heads():
    commands = [each for some in compiled(small("gelu"), (1,) * 40).lowered.commands for each in some]
    attention = [each for each in commands if isinstance(each, AttentionCommand)]
    assert [each.heads for each in attention] == [2] * 40 + [1] * 40


def test_both_formats_of_a_normalized_value_share_its_statistics():
    commands = [each for some in compiled(small("gelu"), (20,)).lowered.commands for each in some]
    kinds = [each.kind for each in commands if isinstance(each, VectorCommand)]
    assert kinds.count(VectorKind.STATS) < kinds.count(VectorKind.NORM)
    assert all(
        VectorKind.STATS in kinds[max(0, n - 2) : n]
        for n, each in enumerate(kinds)
        if each is VectorKind.NORM
    )


def test_more_tokens_than_the_unit_keeps_are_normalized_in_parts():
    made = compiled(small("gelu", size=Size(channels=64, positions=300)), (300, 300))
    norms = [
        each
        for some in made.lowered.commands
        for each in some
        if getattr(each, "kind", 0) is VectorKind.STATS
    ]
    assert {each.columns for each in norms} == {512, 88}
    check(made)


@pytest.mark.soak
def test_minilm_by_its_shapes():
    check(compile_network(read_tokens(shaped("minilm", tokens=128), (128,)), scratchpad_bytes=4 << 20))
