"""Cores over time by a log, and the roles of an encoder's operators."""

import dataclasses
import itertools

import pytest

from hw.board import load_board
from hw.errors import LoomworkError
from hw.network.commands import Core
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.transformer.network import network_of
from hw.network.kernel.signals import signals
from hw.network.model.overlap import overlap
from sim.engines.network.demo.activity import activity_of, joined, runs
from sim.engines.network.demo.gantt import ROWS, gantt, span_of
from sim.engines.network.demo.roles import Role, parts_of
from sim.engines.network.programs import program_for
from sim.run.signals import read_signals
from tests.support.networks.sentences import small
from tests.support.networks.signal_log import write_log

CONFIG, BOARD = NetworkConfig(attention_rows=16), load_board("u55c")


@pytest.fixture(scope="module")
def network():
    return network_of(small("norm", "gelu"), [9, 12])


@pytest.fixture(scope="module")
def program(network):
    made = compile_network(network, scratchpad_bytes=CONFIG.scratchpad_bytes, columns=CONFIG.columns)
    return program_for(made, CONFIG)


@pytest.fixture
def log(program, tmp_path):
    cycles = write_log(tmp_path / "signals.log", program, CONFIG, BOARD)
    return read_signals(tmp_path / "signals.log", [*signals(CONFIG)]), cycles


def test_commands_are_where_the_log_has_them(program, log):
    found = activity_of(log[0], program, log[1])
    played = overlap(program, CONFIG, BOARD)
    for core in Core:
        own = [each for each in found.commands if each.core is core]
        spans = [span for span in played.spans if span.step.core is core]
        assert [each.operator for each in own] == [span.step.operator for span in spans]
        assert own[0].begin == spans[0].begin
        assert max(abs(each.end - span.end) for each, span in zip(own, spans, strict=True)) < len(own)
        assert all(each.working <= each.cycles for each in own)
        assert found.share(core) == pytest.approx(sum(each.working for each in own) / log[1], abs=1e-3)
    assert sum(found.at_once) == log[1]
    assert found.at_once[1] > 0
    first = min(span.begin for span in spans)
    assert runs(found.reads) == [(10, min(each.begin for each in found.commands))]
    assert first > 10


def test_words_with_short_gaps_are_one_transfer(log, program):
    busy = activity_of(log[0], program, log[1]).reads.copy()
    busy[:] = False
    assert runs(busy) == []
    busy[[5, 6, 200, 900]] = True
    assert runs(busy) == [(5, 201), (900, 901)]


def test_a_log_of_another_program_is_refused(program, log):
    shorter = dataclasses.replace(program, steps=program.steps[:-1])
    with pytest.raises(LoomworkError, match=r"unit has \d+ commands, and the log \d+ taken and \d+ finished"):
        activity_of(log[0], shorter, log[1])


def test_commands_of_an_operator_are_joined(program, log):
    found = activity_of(log[0], program, log[1])
    whole = joined(found.commands)
    assert sum(each.working for each in whole) == sum(each.working for each in found.commands)
    for core in Core:
        names = [each.operator for each in whole if each.core is core]
        assert all(one != other for one, other in itertools.pairwise(names))


def test_operators_have_roles(network):
    parts = parts_of(network)
    assert {part.role for part in parts.values()} == set(Role)
    attended = [part.layer for part in parts.values() if part.role is Role.ATTENTION]
    assert attended == [1, 2]
    for role in (Role.JOINING, Role.NARROWING, Role.WIDENING, Role.QUERIES):
        assert {part.layer for part in parts.values() if part.role is role} == {1, 2}
    assert {part.layer for part in parts.values() if part.role is Role.EMBEDDING} == {0}


@pytest.mark.parametrize("layer", [None, 2])
def test_bars_are_spans_and_as_high_as_the_share_at_work(network, program, log, layer):
    found, parts = activity_of(log[0], program, log[1]), parts_of(network)
    figure = gantt(found, parts, load_cycles=5, layer=layer)
    begin, end = (0, log[1]) if layer is None else span_of(found, parts, layer)
    assert figure.layout.xaxis.range == (begin, end)
    assert figure.layout.yaxis.ticktext == ROWS
    commands = joined(found.commands) if layer is None else found.commands
    pale = [bar for bar in figure.data if bar.marker.opacity < 1 and bar.name in set(Role)]
    drawn = sorted((round(x), *place) for bar in pale for x, *place in zip(bar.base, bar.x, strict=True))
    wanted = [(each.begin, each.cycles) for each in commands if each.end > begin and each.begin < end]
    assert drawn == sorted(wanted)
    for bar in figure.data:
        if bar.marker.opacity == 1 and bar.name == Role.ATTENTION:
            area = sum(x * width for x, width in zip(bar.x, bar.width, strict=True))
            own = [
                each.working
                for each in commands
                if each.core is Core.ATTENTION and each.end > begin and each.begin < end
            ]
            assert area == pytest.approx(0.74 * sum(own))
            assert "attention unit" in bar.customdata[0]
