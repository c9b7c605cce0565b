"""Pages opened beat by beat against the golden model: content, verdict, and the cycle of each."""

import random

import numpy as np
import pytest

from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.crypto.page_open import PageOpen
from hw.oram.core.pages.opener import PageOpener
from sim.golden.oram import gcm
from tests.hw.oram.core.pages.beats import CONFIGS, beats_of, case, run, unit
from tests.support.oram.blocks import content
from tests.support.oram.images import open_pages


@pytest.mark.sample(2)
@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("lanes", CONFIGS)
def test_opened(lanes, pauses):
    """Back to back as soon as their keystream is ready; and with pauses."""
    rng, wait = np.random.default_rng([lanes, pauses]), random.Random(lanes)
    config, dut = CONFIGS[lanes], unit(PageOpener, lanes)
    key, cipher, which, pages = case(rng, config)
    sealed = gcm.seal_pages(cipher, *which, pages[:, 16:])
    for n in rng.permutation(len(sealed))[: len(sealed) // 2]:
        sealed[n, rng.integers(config.page_bytes)] ^= 1 << rng.integers(8)
    requests = [{"page": int(page), "version": int(version)} for page, version in which.T]
    begin, begins = Keystream.LATENCY + 3, []
    for _ in pages:
        begins.append(begin)
        begin += config.page_cycles + (wait.randrange(20) if pauses else 0)
    beats = beats_of(config, begins, sealed)
    came, verdicts, there, starved = run(
        dut,
        config,
        key,
        [(dut.i, beats)],
        [dut.o, dut.verdict, dut.arrived, dut.starved],
        requests=[(dut.request, requests)],
        until=begin + PageOpen.VERDICT_LATENCY,
    )
    assert not starved
    assert len(there) == len(pages)
    assert all(told < begin for told, begin in zip(there, begins, strict=True))
    opened, genuine = open_pages(cipher, *which, sealed)
    assert {genuine.all(), genuine.any()} == {False, True}
    found = np.frombuffer(b"".join(content(beat, 64) for beat in came.values()), np.uint8)
    found = found.reshape(pages.shape)
    np.testing.assert_array_equal(found[:, 16:], opened)
    assert not found[:, :16].any()
    assert list(came) == [cycle + PageOpener.latency(config) for cycle in beats]
    judged = config.page_cycles - 1 + PageOpen.VERDICT_LATENCY
    assert verdicts == {begin + judged: right for begin, right in zip(begins, genuine.tolist(), strict=True)}


@pytest.mark.parametrize("lanes", CONFIGS)
def test_a_beat_before_its_keystream_is_told(lanes):
    config, dut = CONFIGS[lanes], unit(PageOpener, lanes)
    came, starved = run(dut, config, bytes(16), [(dut.i, {5: 1})], [dut.o, dut.starved], until=20)
    assert not came
    assert list(starved) == list(range(5, 5 + config.page_beat_cycles))
