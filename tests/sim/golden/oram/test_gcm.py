"""The golden GCM against the examples of its designers; rejection of changed pages."""

import numpy as np
import pytest

from sim.golden.oram import gcm
from tests.support.oram.images import open_pages

#: Key, IV, plaintext, ciphertext, tag of test cases 1 to 3 of "The Galois/Counter Mode of Operation (GCM)",
#: McGrew and Viega, appendix B.
CASES = {
    1: ("00" * 16, "00" * 12, "", "", "58e2fccefa7e3061367f1d57a4e7455a"),
    2: (
        "00" * 16,
        "00" * 12,
        "00" * 16,
        "0388dace60b6a392f328c2b971b2fe78",
        "ab6e47d42cec13bdf53a67b21257bddf",
    ),
    3: (
        "feffe9928665731c6d6a8f9467308308",
        "cafebabefacedbaddecaf888",
        (
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255"
        ),
        (
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
            "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985"
        ),
        "4d5c2af327cd64a62cf35abd2ba6fab4",
    ),
}


def unhex(text):
    return np.frombuffer(bytes.fromhex(text), np.uint8)


@pytest.mark.parametrize("case", CASES)
def test_published(case):
    key, *texts = CASES[case]
    iv, plaintext, ciphertext, tag = map(unhex, texts)
    found, tags = gcm.Gcm(bytes.fromhex(key), tag_bytes=12).seal(iv[None], plaintext[None])
    assert found.tobytes() == ciphertext.tobytes()
    assert tags.tobytes() == tag[:12].tobytes()


@pytest.mark.parametrize("tag_bytes", [8, 12, 16])
def test_every_flip_of_a_page_shows(tag_bytes):
    rng = np.random.default_rng(tag_bytes)
    cipher = gcm.Gcm(rng.bytes(16), tag_bytes=tag_bytes)
    content = rng.integers(0, 256, 48, np.uint8)
    page, version = 0x0123456789AB, 0xFFFFFFFFFFFF
    (sealed,) = gcm.seal_pages(cipher, np.array([page]), np.array([version]), content[None])
    flipped = np.packbits(np.unpackbits(sealed) ^ np.eye(sealed.size * 8, dtype=np.uint8), axis=1)
    which = np.full(len(flipped) + 1, page), np.full(len(flipped) + 1, version)
    opened, right = open_pages(cipher, *which, np.concatenate([flipped, sealed[None]]))
    assert right.tolist() == [False] * len(flipped) + [True]
    assert opened[-1].tobytes() == content.tobytes()


def test_a_page_is_of_one_place_and_version():
    cipher = gcm.Gcm(b"of sixteen bytes")
    pages, versions = np.array([5, 5, 6, 1 << 47]), np.array([1, 2, 1, 5 << 40])
    sealed = gcm.seal_pages(cipher, pages, versions, np.zeros((4, 48), np.uint8))
    assert len({page.tobytes() for page in sealed}) == 4
    for shift in range(4):
        _, right = open_pages(cipher, np.roll(pages, shift), np.roll(versions, shift), sealed)
        assert right.tolist() == [shift == 0] * 4
