"""The timing graph against delays added by hand, and against a naive longest path."""

import math
import random

import pytest

from hw.errors import ToolError
from sim.timing.delays import load_delays
from sim.timing.graph import TimingGraph
from sim.timing.netlist import part_of, prepared

DELAYS = load_delays()


def cell(kind, outputs=("O", "Q"), **pins):
    return {
        "type": kind,
        "attributes": {},
        "port_directions": {pin: "output" if pin in outputs else "input" for pin in pins},
        "connections": {pin: bits if isinstance(bits, list) else [bits] for pin, bits in pins.items()},
    }


def module(cells, ports=(), names=None):
    return {
        "cells": cells,
        "ports": {name: {"direction": way, "bits": bits} for name, way, bits in ports},
        "netnames": {
            name: {"bits": [bit], "attributes": {"src": f"/x/hw/lib/{name}.py:7.1-7.2"}}
            for name, bit in (names or {}).items()
        },
    }


def graph_of(modules, top="top", crossing=0.0, die_of=None):
    parts = {name: part_of(content, DELAYS, set(modules)) for name, content in modules.items()}
    return TimingGraph(parts, top, DELAYS, crossing=crossing, die_of=die_of)


def arrivals(graph):
    return {name: float(delay) for (name, *_), delay in zip(graph.endpoints, graph.arrivals, strict=True)}


def routed(loads):
    return DELAYS["routed"] + DELAYS["routed_spread"] * math.sqrt(loads)


def two_luts():
    """Register a -> LUT (two loads) -> LUT -> registers b and c; b's enable is a's output."""
    return module(
        {
            "a": cell("FDRE", C=2, D="x", Q=3, CE="1", R="0"),
            "first": cell("LUT2", I0=3, I1="1", O=4),
            "second": cell("LUT1", I0=4, O=5),
            "b": cell("FDRE", C=2, D=5, Q=6, CE=3, R="0"),
            "c": cell("FDRE", C=2, D=4, Q=7, CE="1", R="0"),
        },
        names={"a": 3, "b": 6, "c": 7},
    )


def test_delays_of_two_luts_by_hand():
    graph = graph_of({"top": two_luts()})
    first = DELAYS["ff_clock_to_out"] + routed(2) + DELAYS["lut"]
    found = arrivals(graph)
    assert found["b/D"] == pytest.approx(
        first + routed(2) + DELAYS["lut"] + DELAYS["lut_to_ff"] + DELAYS["ff_setup"]
    )
    assert found["b/CE"] == pytest.approx(DELAYS["ff_clock_to_out"] + routed(2) + DELAYS["ff_control_setup"])
    assert found["c/D"] == pytest.approx(first + routed(2) + DELAYS["fabric_to_ff"] + DELAYS["ff_setup"])


def test_the_slowest_path_is_given_net_by_net():
    graph = graph_of({"top": two_luts()})
    names = graph.endpoints
    endpoint = [name for name, *_ in names].index("b/D")
    steps = graph.path_to(endpoint)
    assert [(step.name, step.cell, step.loads) for step in steps] == [
        ("a", "FDRE", 2),
        ("", "LUT2", 2),
        ("", "LUT1", 1),
    ]
    assert steps[0].arrival == DELAYS["ff_clock_to_out"]
    assert names[endpoint][1].startswith("/x/hw/lib/b.py:7")


def test_an_inverter_is_part_of_what_it_feeds():
    inverted = two_luts()
    inverted["cells"]["not"] = cell("INV", ("O",), I=3, O=8)
    inverted["cells"]["first"]["connections"]["I0"] = [8]
    inverted["cells"]["second"]["connections"]["I0"] = ["1"]  # so that nothing can be merged
    straight = two_luts()
    straight["cells"]["second"]["connections"]["I0"] = ["1"]
    assert arrivals(graph_of({"top": prepared(inverted, set())})) == arrivals(graph_of({"top": straight}))


def test_a_lut_takes_over_the_one_before_it_which_stays_for_others():
    found = prepared(two_luts(), set())["cells"]
    assert found["second"]["connections"] == {"I0": [3], "O": [5]}
    assert found["first"]["connections"]["O"] == [4]
    alone = two_luts()
    del alone["cells"]["c"]
    assert "first" not in prepared(alone, set())["cells"]


def test_merged_luts_have_at_most_six_inputs():
    """Two LUTs of four inputs each before one that has both: eight inputs do not fit, and nothing changes."""
    registers = {f"q{n}": cell("FDRE", C=99, D="x", Q=n, CE="1", R="0") for n in range(8)}
    wide = {
        "low": cell("LUT4", I0=0, I1=1, I2=2, I3=3, O=10),
        "high": cell("LUT4", I0=4, I1=5, I2=6, I3=7, O=11),
        "both": cell("LUT2", I0=10, I1=11, O=12),
        "end": cell("FDRE", C=99, D=12, Q=13, CE="1", R="0"),
    }
    found = prepared(module(registers | wide), set())["cells"]
    assert found["both"]["connections"] == {"I0": [10], "I1": [11], "O": [12]}
    assert found["both"]["type"] == "LUT2"


def test_a_carry_chain_by_hand():
    chain = module(
        {
            "a": cell("FDRE", C=2, D="x", Q=3, CE="1", R="0"),
            "low": cell("CARRY4", ("O", "CO"), CI="0", CYINIT="0", S=[3, "0", "0", "0"], DI=["0"] * 4,
                        O=[10, 11, 12, 13], CO=[14, 15, 16, 17]),
            "high": cell("CARRY4", ("O", "CO"), CI=17, CYINIT="0", S=["0"] * 4, DI=["0"] * 4,
                         O=[20, 21, 22, 23], CO=[24, 25, 26, 27]),
            "sum": cell("FDRE", C=2, D=23, Q=30, CE="1", R="0"),
            "near": cell("FDRE", C=2, D=10, Q=31, CE="1", R="0"),
        },
        names={"a": 3, "sum": 30, "near": 31},
    )  # fmt: skip
    found = arrivals(graph_of({"top": chain}))
    # The register has no LUT before its carry bit: it goes through one.
    start = DELAYS["ff_clock_to_out"] + routed(1) + DELAYS["lut"] + DELAYS["carry_first_bit"]
    end = DELAYS["carry_to_ff"] + DELAYS["ff_setup"]
    assert found["near/D"] == pytest.approx(start + end)
    assert found["sum/D"] == pytest.approx(start + 3 * DELAYS["carry_bit"] + DELAYS["carry_sum"] + end)


def test_paths_go_on_through_the_ports_of_placed_parts():
    """A register of one placement through a LUT of the next and one of the top: nothing ends at a port."""
    inner = module(
        {
            "lut": cell("LUT1", I0=2, O=3),
            "kept": cell("FDRE", C=9, D=2, Q=4, CE="1", R="0"),
        },
        [("i", "input", [2]), ("o", "output", [3]), ("q", "output", [4])],
        {"kept": 4},
    )
    outer = module(
        {
            "p": cell("inner", ("o", "q"), i=5, o=6, q=7),
            "r": cell("inner", ("o", "q"), i=7, o=8, q=10),
            "end": cell("FDRE", C=9, D=8, Q=11, CE="1", R="0"),
        },
        [("x", "input", [5]), ("y", "output", [6])],
        {"end": 11},
    )
    graph = graph_of({"top": outer, "inner": inner})
    found = arrivals(graph)
    through = DELAYS["ff_clock_to_out"] + routed(2) + DELAYS["lut"] + DELAYS["lut_to_ff"] + DELAYS["ff_setup"]
    assert found["end/D"] == pytest.approx(through)
    assert found["y[0] (port)"] == pytest.approx(through)  # from the input, like a register's output
    assert set(found) == {"end/D", "p.kept/D", "r.kept/D", "y[0] (port)"}
    steps = graph.path_to([name for name, *_ in graph.endpoints].index("end/D"))
    assert [step.name for step in steps] == ["p.kept", ""]
    dearer = arrivals(graph_of({"top": outer, "inner": inner}, crossing=1000.0))
    assert dearer["end/D"] == pytest.approx(through + 2000.0)  # p.q to r.i, and r.o to the register


def between_parts():
    """Register a of the top to a register of p and to one of r, and p's, through a LUT of the top, back."""
    inner = module(
        {"kept": cell("FDRE", C=9, D=2, Q=4, CE="1", R="0")},
        [("i", "input", [2]), ("q", "output", [4])],
        {"kept": 4},
    )
    outer = module(
        {
            "a": cell("FDRE", C=9, D=5, Q=6, CE="1", R="0"),
            "p": cell("inner", ("q",), i=6, q=7),
            "r": cell("inner", ("q",), i=6, q=8),
            "lut": cell("LUT1", I0=7, O=10),
            "end": cell("FDRE", C=9, D=10, Q=11, CE="1", R="0"),
        },
        [("x", "input", [5]), ("y", "output", [8])],
        {"a": 6, "end": 11},
    )
    return {"top": outer, "inner": inner}


def test_nets_between_dies_are_charged_for_each_border_and_no_others():
    """From one driver a net may go to a register beside it and to one two dies away."""
    near = arrivals(graph_of(between_parts()))
    assert arrivals(graph_of(between_parts(), crossing=1000.0, die_of=lambda path: 2)) == near
    graph = graph_of(between_parts(), crossing=1000.0, die_of={"": 0, "p": 2, "r": 0}.__getitem__)
    assert graph.crossing_nets == 2  # a, and back from p
    longer = {name: delay - near[name] for name, delay in arrivals(graph).items()}
    assert longer == pytest.approx(
        {"a/D": 0.0, "p.kept/D": 2000.0, "r.kept/D": 0.0, "end/D": 2000.0, "y[0] (port)": 0.0}
    )
    assert [path for path, _ in graph.placed] == ["", "p", "r"]


def test_ports_of_the_kernel_lie_where_its_rest_does():
    graph = graph_of(between_parts(), crossing=1000.0, die_of={"": 0, "p": 0, "r": 1}.__getitem__)
    near, far = arrivals(graph_of(between_parts())), arrivals(graph)
    assert far["y[0] (port)"] - near["y[0] (port)"] == pytest.approx(1000.0)


def test_a_lut_and_a_register_on_another_die_share_no_slice():
    parts = between_parts()
    parts["top"]["cells"]["p"]["connections"]["i"] = [10]
    near = arrivals(graph_of(parts))["p.kept/D"]
    del parts["top"]["cells"]["end"]
    packed = arrivals(graph_of(parts))["p.kept/D"]
    far = graph_of(parts, crossing=1000.0, die_of={"": 0, "p": 1, "r": 0}.__getitem__)
    there = DELAYS["lut_to_ff"]
    routed_net = routed(1) + DELAYS["fabric_to_ff"]
    assert packed < near
    # The net of `p`'s own register to the LUT crosses as well.
    assert arrivals(far)["p.kept/D"] == pytest.approx(packed - there + routed_net + 2000.0)


def test_scatter_is_of_routed_nets_alone_and_the_same_for_a_seed():
    graph = graph_of({"top": two_luts()})
    assert graph.scattered(0.0, 1) == pytest.approx(graph.arrivals)
    draws = [graph.scattered(144.0, seed) for seed in range(200)]
    assert (graph.scattered(144.0, 7) == draws[7]).all()
    names = [name for name, *_ in graph.endpoints]
    enable = [delays[names.index("b/CE")] for delays in draws]
    # One routed net: its deviation is that of the draws, and about the fit.
    assert sum(enable) / 200 == pytest.approx(graph.arrivals[names.index("b/CE")], abs=30)
    assert 110 < (sum((delay - sum(enable) / 200) ** 2 for delay in enable) / 200) ** 0.5 < 180
    packed = module(
        {
            "m": cell("MUXF7", I0=1, I1="0", S="1", O=2),
            "d": cell("FDRE", C=9, D=2, Q=3, CE="1", R="0"),
        },
        [("i", "input", [1])],
        {"d": 3},
    )
    apart = graph_of({"top": packed})
    moved = [float(apart.scattered(1e6, seed)[0]) for seed in range(5)]
    assert min(moved) == DELAYS["ff_clock_to_out"] + DELAYS["wide_mux"] + DELAYS["ff_setup"]  # net of 0 ps


def test_long_wires_are_between_parts():
    graph = graph_of(between_parts())
    more = graph.lengthened(500.0) - graph.arrivals
    longer = {name: float(ps) for (name, *_), ps in zip(graph.endpoints, more, strict=True)}
    assert longer == pytest.approx(
        {"a/D": 0.0, "p.kept/D": 500.0, "r.kept/D": 500.0, "end/D": 500.0, "y[0] (port)": 500.0}
    )


@pytest.mark.parametrize("seed", range(20))
def test_against_a_naive_longest_path(seed):
    """Random LUTs between registers: every endpoint matches a search over all its paths."""
    rng = random.Random(seed)
    count = 60
    cells, inputs = {}, {}
    for net in range(10):
        cells[f"q{net}"] = cell("FDRE", C=999, D="x", Q=net, CE="1", R="0")
    for net in range(10, count):
        inputs[net] = rng.sample(range(max(0, net - 25), net), rng.randint(1, 4))
        cells[f"l{net}"] = cell(
            f"LUT{len(inputs[net])}", **{f"I{n}": bit for n, bit in enumerate(inputs[net])}, O=net
        )
    captured = rng.sample(range(count), 8)
    for n, net in enumerate(captured):
        cells[f"d{n}"] = cell("FDRE", C=999, D=net, Q=100 + n, CE="1", R="0")
    loads = [sum(bits.count(net) for bits in inputs.values()) + captured.count(net) for net in range(count)]

    def settled(net):
        if net < 10:
            return DELAYS["ff_clock_to_out"]
        return max(settled(bit) + routed(loads[bit]) + DELAYS["lut"] for bit in inputs[net])

    graph = graph_of({"top": module(cells, names={f"d{n}": 100 + n for n in range(8)})})
    for name, delay in arrivals(graph).items():
        net = captured[int(name[1])]
        last = (
            DELAYS["lut_to_ff"]
            if net >= 10 and loads[net] == 1
            else routed(loads[net]) + DELAYS["fabric_to_ff"]
        )
        assert delay == pytest.approx(settled(net) + last + DELAYS["ff_setup"]), name


def test_a_combinational_loop_is_named():
    loop = module(
        {"one": cell("LUT1", I0=2, O=3), "two": cell("LUT1", I0=3, O=2)}, names={"round": 2, "way": 3}
    )
    with pytest.raises(ToolError, match=r"combinational loop through (round|way)"):
        graph_of({"top": loop})


def test_an_unknown_cell_is_refused():
    with pytest.raises(ToolError, match="OBUF, a cell whose timing is not known"):
        part_of(module({"pad": cell("OBUF", I=2, O=3)}), DELAYS, set())
