"""State to bytes and back; offsets in pages, records and buckets by hand."""

from dataclasses import replace

import numpy as np
import pytest

from sim.golden.oram.gcm import Gcm
from sim.golden.oram.image import bucket_images, page_contents, record_images, sealed_pages
from sim.golden.oram.map import Item
from sim.golden.oram.position import MapEntry
from tests.sim.golden.oram.test_map import SMALL, VARIANTS
from tests.support.oram.images import open_page, parse_bucket, parse_record
from tests.support.oram.workloads import commands_of, quick_map

GCM = Gcm(bytes(range(16)))


def plain(slots):
    return [None if item is None else (item.key, item.value) for item in slots]


@pytest.mark.parametrize("value_bytes", [8, 16, 64, 192])
@pytest.mark.parametrize("variant", ["one-skip-0.2", "both-always-0.9"])
def test_there_and_back(variant, value_bytes):
    config = replace(VARIANTS[variant], value_bytes=value_bytes)
    state = quick_map(config)
    state.run(commands_of("uniform", np.random.default_rng(0), 800, config, kinds=(0, 1, 5, 1)))
    rng = np.random.default_rng(1)
    numbers = range(config.host_pages)
    for page, sealed in zip(numbers, sealed_pages(state, GCM, numbers), strict=True):
        version = 1 + state.writes[page]
        assert open_page(config, GCM, page, version, sealed) == plain(state.pages[page])
    with pytest.raises(ValueError, match=f"page {page}"):
        open_page(config, GCM, page, version + 1, sealed)
    images, cares = record_images(state, range(config.records))
    noise = rng.integers(256, size=images.shape, dtype=np.uint8)
    for record, image in enumerate(np.where(cares, images, noise)):
        in_page = state.pages[record] if record < config.host_pages else []
        expected = 1 + state.writes.get(record, 0), len(list(filter(None, in_page)))
        assert parse_record(config, image) == (*expected, plain(state.records[record]))
    position = state.position
    for table in (0, 1):
        images, cares = bucket_images(state, table, range(config.buckets))
        noise = rng.integers(256, size=images.shape, dtype=np.uint8)
        for bucket, image in enumerate(np.where(cares, images, noise)):
            slots = position.tables[table][bucket]
            found = parse_bucket(config, image)
            assert [entry and entry.records for entry in slots] == [entry and entry[1] for entry in found]
            assert [entry and entry.permuted for entry in slots] == [
                entry and position.permuted(table, bucket, entry[0]) for entry in found
            ]


def test_places_by_hand():
    config = replace(SMALL, alpha=0)  # Z = 8, E = 6, V = 8; 32 labels, 16 buckets
    state = quick_map(config)
    item = Item(0x0102030405060708, b"abcdefgh", 3)
    state.pages[5][2] = item
    state.writes[5] = 0x1234
    (content,) = page_contents(state, [5])
    page = bytes(16) + content.tobytes()
    assert len(page) == 192  # 24 + 64 + 64, rounded up
    assert page[16:24] == bytes([4, 0, 0, 0, 0, 0, 0, 0])
    assert page[24 + 16 : 24 + 24] == bytes([8, 7, 6, 5, 4, 3, 2, 1])
    assert page[88 + 16 : 88 + 24] == b"abcdefgh"
    assert sum(page) == 4 + 36 + sum(b"abcdefgh")

    state.records[5][5] = item
    (record,), (care,) = record_images(state, [5])
    assert record.nbytes == 128  # 32 + 48 + 48
    assert record[:8].tobytes() == (0x1235).to_bytes(8, "little")
    assert record[8:32].tolist() == [32, *[0] * 7, 1, *[0] * 15]
    assert record[32 + 40 : 32 + 48].tobytes() == bytes([8, 7, 6, 5, 4, 3, 2, 1])
    assert record[80 + 40 : 80 + 48].tobytes() == b"abcdefgh"
    assert np.flatnonzero(care).tolist() == [*range(32), *range(72, 80), *range(120, 128)]

    # 64-bit u: bits 0 to 3 are the bucket of table 0, bits 4 to 7 that of table 1.
    state.position.tables[1][6][13] = MapEntry(0xFEDCBA9876543265, (17,), 0)
    (bucket,), (care,) = bucket_images(state, 1, [6])
    assert bucket[:2].tolist() == [0, 0x20]
    number = int.from_bytes(bucket[2 + 9 * 13 :][:9].tobytes(), "little")
    assert number == 0xFEDCBA987654325 | 17 << 60
    assert np.flatnonzero(care).tolist() == [0, 1, *range(119, 128)]
