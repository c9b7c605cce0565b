"""The table of delays: its fit, its errors, and the rules for nets."""

import numpy as np
import pytest
import yaml

from hw.errors import InputError
from sim.timing.delays import FILE, Driver, Sink, load_delays, net_delays


def test_routed_nets_are_the_least_squares_fit_of_those_observed():
    loads, delays = np.concatenate(list(yaml.safe_load(FILE.read_text())["observed"].values())).T
    terms = np.stack([np.ones(len(loads)), np.sqrt(loads)], axis=1)
    (base, spread), *_ = np.linalg.lstsq(terms, delays, rcond=None)
    found = load_delays()
    assert (found["routed"], found["routed_spread"]) == pytest.approx((base, spread), rel=0.005)
    left = delays - terms @ (base, spread)
    assert found["routed_deviation"] == pytest.approx(left.std(), abs=1)


def test_a_net_grows_with_its_loads_and_stays_in_a_slice_where_it_can():
    delays = load_delays()
    one, hundred = net_delays(delays, [Driver.LUT] * 2, [Sink.LUT] * 2, [1, 100])
    assert one == pytest.approx(delays["routed"] + delays["routed_spread"])
    assert hundred == pytest.approx(delays["routed"] + 10 * delays["routed_spread"])
    within = net_delays(delays, [Driver.LUT, Driver.LUT], [Sink.FF, Sink.FF], [1, 2])
    assert within[0] == delays["lut_to_ff"] < within[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  lut:  ", "  lutt: ", "cells.lutt.[key] must be 'lut', 'wide_mu"),
        (
            "  routed:         {value: 240, source: routed}\n",
            "",
            "nets must be a table with routed, not 'missing'",
        ),
        ("{value: 92,", "{value: fast,", "cells.lut.value must be a number, not 'fast'"),
        ("source: bypass}", "source: rumour}", "nets.fabric_to_ff.source must be a key of sources: slice, "),
        ("nets:\n", "nets:\n  glue: {value: 1, source: slice}\n", "nets.glue.[key] must be 'lut_to_ff', "),
    ],
)
def test_a_wrong_table_is_refused_with_file_and_line(tmp_path, old, new, message):
    text = FILE.read_text()
    assert old in text
    path = tmp_path / "delays.yaml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=r"delays\.yaml:\d+: ") as caught:
        load_delays(path)
    assert message in str(caught.value)
