"""The scheduler's driver: sources to the region of the memory, and outputs back, without any simulation."""

import numpy as np
import pytest

from hw.errors import InputError
from hw.scheduler.config import SchedulerConfig, frozen
from hw.scheduler.driver.job import launch_program, make_job
from hw.scheduler.driver.region import MemoryRegion
from hw.scheduler.program.image import encode
from tests.support.program.example import example_program


@pytest.fixture
def region():
    return MemoryRegion(program=example_program(32))


def sources_of(region):
    generator = np.random.default_rng(0)
    return {
        item.name: generator.integers(0, 256, item.size_bytes, np.uint8) for item in region.dataflow.sources
    }


def test_sources_lie_at_their_homes_and_the_rest_is_filled(region):
    sources = sources_of(region)
    content = region.write_sources(sources, fill=7)
    assert content.size == region.size_bytes
    outside = np.ones(content.size, bool)
    for item in region.dataflow.sources:
        place = region.place(item)
        assert place.start == 32 * region.dataflow.homes[item.name]
        assert content[place][: item.size_bytes].tobytes() == sources[item.name].tobytes()
        assert not content[place][item.size_bytes :].any()
        outside[place] = False
    assert (content[outside] == 7).all()
    assert (outside >= ~region.unwritten).all()


def test_outputs_are_read_without_padding(region):
    content = np.arange(region.size_bytes, dtype=np.uint64).astype(np.uint8)
    outputs = region.outputs(region.read_saved(content))
    kinds = {item.name: item for item in region.dataflow.saved if item.kind.value == "output"}
    assert outputs.keys() == kinds.keys()
    for name, item in kinds.items():
        first = region.place(item).start
        assert outputs[name].tobytes() == content[first : first + item.size_bytes].tobytes()


def test_a_launch_has_the_region_and_the_image(region):
    config = SchedulerConfig()
    launch = make_job(region, sources_of(region), config).launch
    assert [buffer.argument for buffer in launch.buffers] == ["memory", "program"]
    assert launch.buffers[1].data.tobytes() == encode(region.program)
    program = launch_program(frozen(region.program))
    assert program is region.program
    launch = make_job(region, sources_of(region), frozen(program)).launch
    assert [buffer.argument for buffer in launch.buffers] == ["memory"]


def test_a_missing_source_is_named(region):
    sources = sources_of(region)
    del sources["w"]
    with pytest.raises(InputError, match=r"tensor w must be \d+ bytes, a source"):
        region.write_sources(sources)
