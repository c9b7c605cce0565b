"""Operations that are alone, by hand; further recurrences are compared with a machine in
`tests/sim/golden/oram/test_trace.py`.
"""

import pytest

from hw.oram.config import OramConfig
from hw.oram.model.admission import Admission
from tests.sim.golden.oram.test_trace import TOUCHES

CONFIG = OramConfig(log_n=8, inflight=16, position_cycles=20, touch_cycles=32, position_ports=2)


@pytest.mark.parametrize("early", [0, 1])
def test_an_operation_is_alone_after_the_rest(early):
    """One behind it is not."""
    times = Admission(CONFIG, TOUCHES)
    times.command_arrived.append(0)
    assert (times.accept(), times.issue(None), times.admit()) == (1, 1 + 19, 20 + 33)
    again = 53 + 26 - early
    times.command_arrived += [again - 1] * 2
    assert [times.accept(), times.accept()] == [again, again + CONFIG.interval]
    assert times.alone == [True, not early, False]
    wait = 24 if early else 19
    assert [times.issue(None), times.issue(None)] == [again + wait, again + CONFIG.interval + 24]
    assert times.admit() == again + wait + (40 if early else 33)
