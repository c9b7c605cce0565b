"""Sums and products of all pairs of bytes: integers and golden model equal onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from hw.network.graph.network import Sum
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.products import product_rule
from hw.network.graph.sums import ALL_PAIRS, sum_rule
from sim.golden.network import execute, result
from tests.support.networks.pairs import (
    EXCEPTIONAL,
    EXCEPTIONAL_PRODUCT,
    SHAPE,
    Scales,
    both,
    drawn_scales,
    every_pair,
    operator_model,
    swapped,
)


def integers_of(rule, given):
    """Return the results of a rule for all pairs, clamped."""
    zeros = given.zeros[0], given.zeros[1]
    found = rule.results(*ALL_PAIRS, zeros=zeros, zero=given.zeros[2])
    return np.clip(found, -128, 127).reshape(SHAPE)


def compare(given):
    """Hold golden model and integers to onnxruntime's sums; return the rule."""
    mine, theirs = both("QLinearAdd", given, every_pair())
    rule = sum_rule(*given.values)
    assert rule.unequal == np.count_nonzero(integers_of(rule, given) != theirs)
    if not rule.unequal:
        assert (mine == theirs).all()
    return rule


def test_sums_of_random_scales():
    rng = np.random.default_rng(1)
    rules = [compare(drawn_scales(rng)) for _ in range(40)]
    assert not any(rule.unequal for rule in rules)


def test_ties_are_even_with_the_zero_point():
    rng = np.random.default_rng(2)
    for _ in range(10):
        given = drawn_scales(rng, ties=True)
        rule = compare(given)
        assert (rule.exceptions, rule.unequal) == ((), 0)
        # A third of all results and more lie at ties.
        exact = np.ldexp(1.0, -rule.shift) * ((ALL_PAIRS[0] - given.zeros[0]) * rule.first).astype(float)
        exact = exact + np.ldexp(1.0, -rule.shift) * ((ALL_PAIRS[1] - given.zeros[1]) * rule.second)
        assert np.mean(np.abs(exact % 1 - 0.5) == 0) >= 0.2


@pytest.mark.parametrize(("count", "given"), EXCEPTIONAL)
def test_exceptions_make_sums_equal(count, given):
    rule = compare(given)
    assert (len(rule.exceptions), rule.unequal) == (count, 0)
    assert sum_rule(*swapped(given).values, last=1) == rule.swapped


def test_pairs_that_remain_are_counted_and_the_golden_model_has_the_gates_results():
    given = Scales(scales=(1.0, 39909.7421875, 1.442865014076233), zeros=(108, 85, 21), unsigned=True)
    rule = sum_rule(*given.values)
    mine, theirs = both("QLinearAdd", given, every_pair())
    assert len(rule.exceptions) == 2
    assert rule.unequal == np.count_nonzero(mine != theirs) > 0
    assert (mine == integers_of(rule, given)).all()


ORDERED = Scales(
    scales=(4.12208366394043, 0.3102538287639618, 2.2221181392669678), zeros=(-7, -39, 9), unsigned=True
)
#: Shapes of operands, and the one that onnxruntime adds last.
ORDERS = [
    ((1, 1, 256, 256), (1, 1, 256, 256), 0),
    ((1, 256, 1, 256), (1, 256, 1, 1), 0),
    ((1, 256, 1, 1), (1, 256, 1, 256), 1),
    ((1, 256, 16, 16), (1, 1, 16, 16), 0),
    ((1, 1, 16, 16), (1, 256, 16, 16), 0),
]


@pytest.mark.parametrize(("first", "second", "last"), ORDERS)
def test_the_order_of_operands_is_onnxruntimes(first, second, last):
    (operator,) = read_network(operator_model("QLinearAdd", ORDERED, (first, second))).operators
    assert operator.inputs[operator.last] == f"in_{last}"
    mine, theirs = both("QLinearAdd", ORDERED, every_pair((first, second)))
    assert (mine == theirs).all()


def test_the_other_order_has_other_results():
    found = []
    for last in (0, 1):
        found.append(integers_of(sum_rule(*ORDERED.values, last=last), ORDERED).reshape(1, 1, -1))
        operator = Sum(name="sum", inputs=("v0", "v1"), output="v2", last=last)
        stored = [side.reshape(1, 1, -1) for side in every_pair()]
        values = {value.name: value for value in ORDERED.values}
        assert (result(operator, stored, values) == found[-1]).all()
    assert np.count_nonzero(found[0] != found[1]) == 3


def test_products_of_random_scales_and_at_ties():
    rng = np.random.default_rng(3)
    for number in range(30):
        first, result = (float(np.float32(each)) for each in np.exp(rng.uniform(-2, 1, 2)))
        second = float(np.float32(np.exp(rng.uniform(-6, -2))))
        zeros = rng.integers(-128, 128, 3)
        if number % 2:
            second, result, zeros[2] = 2.0 ** rng.integers(-9, -2), first, zeros[2] | 1
        given = Scales(
            scales=(first, second, result), zeros=tuple(map(int, zeros)), unsigned=bool(number % 4 < 2)
        )
        mine, theirs = both("QLinearMul", given, every_pair())
        rule = product_rule(*given.values)
        assert (integers_of(rule, given) == theirs).all()
        assert (mine == theirs).all()


def test_products_with_exceptions():
    given = EXCEPTIONAL_PRODUCT
    mine, theirs = both("QLinearMul", given, every_pair())
    rule = product_rule(*given.values)
    assert (len(rule.exceptions), rule.unequal) == (2, 0)
    assert (integers_of(rule, given) == theirs).all()
    assert (mine == theirs).all()


def test_a_float_graph_that_onnxruntime_fuses_has_the_same_sums():
    """Ties and operands in both orders."""
    rng = np.random.default_rng(5)
    for given in (ORDERED, swapped(ORDERED), drawn_scales(rng, ties=True), drawn_scales(rng, ties=True)):
        model = float_graph(given)
        own = 128 * given.unsigned
        kind = np.uint8 if given.unsigned else np.int8
        stored = every_pair()
        feeds = {f"in_{n}": (each.astype(int) + own).astype(kind) for n, each in enumerate(stored)}
        (theirs,) = onnxruntime.InferenceSession(model).run(None, feeds)
        inputs = {f"in_{n}": each[0].transpose(1, 2, 0) for n, each in enumerate(stored)}
        mine = execute(read_network(model), inputs)["out"].transpose(2, 0, 1)[None]
        assert (mine == theirs.astype(int) - own).all()


def float_graph(given):
    """Return the sum of real numbers between DequantizeLinear and QuantizeLinear."""
    model = onnx.load_model_from_string(operator_model("QLinearAdd", given, (SHAPE, SHAPE)))
    names = [[f"in_{n}", f"scale_{n}", f"zero_{n}"] for n in range(2)]
    nodes = [helper.make_node("DequantizeLinear", each, [f"real_{n}"]) for n, each in enumerate(names)]
    nodes.append(helper.make_node("Add", ["real_0", "real_1"], ["sum"]))
    nodes.append(helper.make_node("QuantizeLinear", ["sum", "scale_2", "zero_2"], ["out"]))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


@pytest.mark.parametrize("kind", ["QLinearAveragePool", "QLinearGlobalAveragePool"])
def test_ties_of_averages_are_onnxruntimes(kind):
    """With scales that are powers of two, so that onnxruntime's sums in float32 are exact."""
    rng = np.random.default_rng(4)
    for number in range(6):
        zeros = (int(rng.integers(-128, 128)), int(rng.integers(-128, 128)) | 1)
        given = Scales(scales=(0.25, 0.25), zeros=zeros, unsigned=bool(number % 2))
        size = 20 if kind == "QLinearAveragePool" else 2
        stored = rng.integers(-128, 128, (1, 512, size, size)).astype(np.int8)
        window = {"kernel_shape": (2, 2)} if size > 2 else {"channels_last": 0}
        mine, theirs = both(kind, given, [stored], **window)
        assert (mine == theirs).all()
