"""Workloads of AccelForge: einsums become layers, and what is wrong is one line."""

import pytest

from hw.errors import InputError
from sim.workloads.layers import Attention, Convolution, Product
from sim.workloads.reader import read_workload

TRANSFORMER = """\
workload:
  rank_sizes:
    {% set N_TOKENS = N_TOKENS | default(32) %}
    B: 2
    P: {{N_TOKENS}}
    M: {{N_TOKENS}}
    H: 4
    E: 16
    F: 24
    D: 64
  bits_per_value: {All: 8}
  persistent_tensors: weight - Intermediates
  einsums:
  - {einsum: "I[b, m, d] = copy(I_in[b, m, d])", is_copy_operation: True}
  - "Q[b, m, h, e] = I[b, m, d] * WQ[h, e, d]"
  - einsum: "QK[b, m, p, h] = Q[b, m, h, e] * K[b, M: p, h, e]"
    renames: {input: Q}
  - "QK_softmax[b, m, p, h] = QK[b, m, p, h]"
  - "AV[b, m, h, f] = QK_softmax[b, m, p, h] * V[b, M: p, h, f]"
renames:
  einsums: []
"""
BLOCK = """\
workload:
  rank_sizes: {B: 1, P0: 28, Q0: 30, N0: 24, T0: 192, P1: 26, Q1: 13}
  bits_per_value: {All: 16}
  einsums:
  - name: Pointwise
    tensor_accesses:
    - {name: T0, projection: [p0, q0, n0, b]}
    - {name: WA, projection: [n0, t0]}
    - {name: TA, projection: [p0, q0, t0, b], output: True}
  - name: Depthwise
    tensor_accesses:
    - {name: TA, projection: {P0: p1 + r0, Q0: 2 * q1 + s0, T0: t0, B: b}}
    - {name: WB, projection: [r0, s0, t0]}
    - {name: TB, projection: [p1, q1, t0, b], output: True}
    iteration_space_shape: [0 <= r0 < 3, 0 <= s0 < 4]
arch: {}
"""
CHAIN = """\
{% set N = N | default(3) %}
{% assert N <= 8, "N must be <= 8" %}
workload:
  iteration_space_shape:
    m: 0 <= m < 128
    {% for i in range(N + 1) %}
    n{{i}}: 0 <= n{{i}} < 64
    {% endfor %}
  einsums:
  {% for i in range(N) %}
  - name: Matmul{{i}}
    tensor_accesses:
    - {name: T{{i}}, projection: [m, n{{i}}]}
    - {name: W{{i}}, projection: [n{{i}}, n{{i + 1}}]}
    - {name: T{{i + 1}}, projection: [m, n{{i + 1}}], output: True}
  {% endfor %}
"""


def read(tmp_path, text, **variables):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    return read_workload(path, variables)


def test_a_transformer(tmp_path):
    found = read(tmp_path, TRANSFORMER)
    assert [layer.name for layer in found.layers] == ["I", "Q", "QK", "QK_softmax", "AV"]
    assert found.layers[1].work == Product(rows=64, columns=64, inner=64)
    assert (found.layers[2].work, found.layers[2].count) == (Product(rows=32, columns=32, inner=16), 8)
    (attention,) = found.attentions
    assert attention.work == Attention(heads=8, queries=32, keys=32, query_size=16, value_size=24)
    assert attention.parts == ("QK", "QK_softmax", "AV")
    assert attention.macs == 8 * 32 * 32 * (16 + 24)
    assert found.layers[2].where.endswith("a.yaml:16")


def test_variables_of_the_template(tmp_path):
    assert read(tmp_path, TRANSFORMER, N_TOKENS=48).attentions[0].work.queries == 48
    assert len(read(tmp_path, CHAIN, N=5).layers) == 5
    with pytest.raises(InputError, match="variables must be such that its conditions hold, not 'N must be"):
        read(tmp_path, CHAIN, N=9)


def test_a_variable_that_the_template_does_not_use_is_refused(tmp_path):
    says = r"a.yaml: --dim must be one of N_TOKENS, not 'TOKENS'; did you mean 'N_TOKENS'\?$"
    with pytest.raises(InputError, match=says):
        read(tmp_path, TRANSFORMER, TOKENS=2048)
    with pytest.raises(InputError, match="--dim must be one of N, not 'range'"):
        read(tmp_path, CHAIN, range=3)
    with pytest.raises(InputError, match="--dim must be left out: the template has no variable, not 'N'"):
        read(tmp_path, BLOCK, N=3)


def test_a_block_with_windows(tmp_path):
    found = read(tmp_path, BLOCK)
    pointwise, depthwise = found.layers
    assert pointwise.work == Product(rows=28 * 30, columns=192, inner=24)
    assert depthwise.work == Convolution(
        channels=192, rows=28, columns=28, outputs=192, kernel=(3, 4), strides=(1, 2), group=192
    )
    assert depthwise.macs == 26 * 13 * 192 * 12
    assert found.notes == ("values of 16 bits count as int8", "arch of the file: not read")


def test_a_chain_of_products(tmp_path):
    assert [layer.work for layer in read(tmp_path, CHAIN).layers] == [
        Product(rows=128, columns=64, inner=64)
    ] * 3


def test_without_a_softmax_between_products_are_no_attention(tmp_path):
    text = TRANSFORMER.replace("QK_softmax", "QK_scaled")
    assert read(tmp_path, text).attentions == ()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("B: 2", "B: {{BATCH}}", r"a.yaml:4: template must be of variables with a value: .*--dim"),
        (
            "B: 2",
            "B: {{include('x.yaml')}}",
            r"a.yaml:4: include must be left out: a template reads no other file",
        ),
        ("B: 2", "B: {% include 'x.yaml' %}", r"a.yaml:4: include must be left out"),
        ("{% set N", "{% sat N", r"a.yaml:3: template must be one of Jinja"),
        ("B: 2", "B: {{1 // 0}}", "template must be one that can be evaluated"),
        ("B: 2", "B: 0", r"a.yaml:4: workload.rank_sizes.B must be a whole number from 1"),
        ("    H: 4\n", "", "loops with a size: h has none in rank_sizes"),
        ("renames:\n", "renamed:\n", r"a.yaml:\d+: renamed must be one of workload, renames"),
        ("persistent_tensors", "persistent", "workload.persistent must be one of rank_sizes"),
        ("is_copy_operation", "copied", "einsums.0.copied must be one of einsum"),
        ('"Q[b, m, h, e] = I[b', '"Q[b, m, h, e] + I[b', r"a.yaml:15: workload.einsums.1 must be as in Z"),
        ("I[b, m, d] * WQ", "I[b, m, d] / WQ", r"a.yaml:15: workload.einsums.1 must be as in Z"),
        ("WQ[h, e, d]", "WQ[h, e - 1, d]", r"a.yaml:15: .* must be of loops such as m, M: p"),
        ('"QK_softmax[b, m, p, h] = QK', '"Q[b, m, p, h] = QK', r"a.yaml:18: .*an einsum of another name"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, old, new, says):
    assert TRANSFORMER.count(old) >= 1
    with pytest.raises(InputError, match=says) as raised:
        read(tmp_path, TRANSFORMER.replace(old, new, 1))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: Pointwise\n", "name: 3\n", "must be a mapping with einsum, or with name and tensor_accesses"),
        ("{name: WA, projection: [n0, t0]}", "{name: WA}", "projection must be a list of loops, or loops by"),
        ("{name: WA, projection", "{name: WA, color: 1, projection", "color must be one of name, projection"),
        ("0 <= r0 < 3", "0 <= r0 <= 3", "must be as in 0 <= m < 128"),
        (", output: True}\n  - name: D", "}\n  - name: D", "must be of one output and at least one input"),
    ],
)
def test_wrong_accesses_are_one_line(tmp_path, old, new, says):
    assert BLOCK.count(old) == 1
    with pytest.raises(InputError, match=says):
        read(tmp_path, BLOCK.replace(old, new))
