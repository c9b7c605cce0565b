"""Pages sealed beat by beat against the golden model, and the cycle of their last beat."""

import random

import numpy as np
import pytest

from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.pages.sealer import PageSealer
from sim.golden.oram import gcm
from tests.hw.oram.core.pages.beats import CONFIGS, beats_of, case, nonce, run, unit
from tests.support.oram.blocks import content


@pytest.mark.sample(2)
@pytest.mark.parametrize(("asked", "pauses"), [(-20, False), (-1, False), (2, True)])
@pytest.mark.parametrize("lanes", CONFIGS)
def test_sealed(lanes, asked, pauses):
    """Requested early, or shortly before or after the page's first beat."""
    rng, wait = np.random.default_rng([lanes, pauses]), random.Random(lanes)
    config, dut = CONFIGS[lanes], unit(PageSealer, lanes)
    key, cipher, which, pages = case(rng, config)
    begin, begins = 20, []
    for _ in pages:
        begins.append(begin)
        begin += config.page_cycles + (wait.randrange(20) if pauses else 0)
    requests = {b + asked: nonce(*w) for b, w in zip(begins, which.T, strict=True)}
    sent = [(dut.i, beats_of(config, begins, pages)), (dut.request, requests)]
    late = max(0, asked + Keystream.LATENCY)
    ends = [begin + late + PageSealer.latency(config) for begin in begins]
    (came,) = run(dut, config, key, sent, [dut.o], until=ends[-1] + 2)
    found = b"".join(content(beat, 64) for beat in came.values())
    assert found == gcm.seal_pages(cipher, *which, pages[:, 16:]).tobytes()
    assert list(came)[config.page_beats - 1 :: config.page_beats] == ends
