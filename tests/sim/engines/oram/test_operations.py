"""Files of operations and results: a round trip, and errors that name the line."""

from dataclasses import replace

import numpy as np
import pytest

from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.driver.operations import UNVERIFIED, OperationResults
from sim.engines.oram.operations import read_operations, write_labels, write_results

CONFIG = OramConfig(value_bytes=16, log_n=8)


def written(tmp_path, *lines, header="op,key,value"):
    path = tmp_path / "ops.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_read(tmp_path):
    path = written(tmp_path, "put,5,258", "get,0x10,", "load,18446744073709551615,0x" + "f" * 32, "delete,0,")
    operations = read_operations(path, CONFIG)
    assert operations.codes.tolist() == [Code.PUT, Code.GET, Code.LOAD, Code.DELETE]
    assert operations.keys.tolist() == [5, 16, 2**64 - 1, 0]
    assert operations.values.tolist() == [[2, 1, *[0] * 14], [0] * 16, [255] * 16, [0] * 16]
    assert len(operations) == 4


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("put,5", "fields must be 3: op,key,value, not 2"),
        ("put,5,1,2", "fields must be 3: op,key,value, not 4"),
        ("", "fields must be 3: op,key,value, not 0"),
        ("fetch,5,", "op must be one of nop, get, put, delete, load, not 'fetch'"),
        ("get,5,7", "value must be empty for get, not '7'"),
        ("put,5,", "value must be a whole number below 2^128, decimal or behind 0x, not ''"),
        ("put,5,0x1" + 32 * "0", "value must be a whole number below 2^128"),
        ("put,5,-1", "value must be"),
        ("put,5,1_0", "value must be"),
        ("put,5," + "9" * 5000, "value must be"),
        ("get,0x1" + 16 * "0" + ",", "key must be a whole number below 2^64, decimal or behind 0x, not '0x1"),
        ("get,5.0,", "key must be"),
        ("get,0x,", "key must be"),
        ("get,key,", "key must be"),
        ("get,٣,", "key must be"),
    ],
)
def test_wrong_lines_are_named(tmp_path, line, words):
    path = written(tmp_path, "get,1,", line)
    with pytest.raises(InputError) as caught:
        read_operations(path, CONFIG)
    assert str(caught.value).startswith(f"{path}, line 3: {words}")


def test_keys_of_32_bits(tmp_path):
    config = OramConfig(key_bits=32, value_bytes=8)
    assert read_operations(written(tmp_path, "get,0xffffffff,"), config).keys.tolist() == [2**32 - 1]
    with pytest.raises(InputError, match=r"line 2: key must be a whole number below 2\^32"):
        read_operations(written(tmp_path, "get,0x100000000,"), config)


def test_a_mark_of_the_byte_order_is_no_part_of_the_first_column(tmp_path):
    path = written(tmp_path, "get,7,")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_operations(path, CONFIG).keys.tolist() == [7]


def test_wrong_files(tmp_path):
    with pytest.raises(InputError, match="a file that exists"):
        read_operations(tmp_path / "none.csv", CONFIG)
    with pytest.raises(InputError, match=r"ops.csv: columns must be op,key,value, not 'key,op'"):
        read_operations(written(tmp_path, header="key,op"), CONFIG)
    with pytest.raises(InputError, match="must be at least 1, not 0"):
        read_operations(written(tmp_path), CONFIG)
    (tmp_path / "binary.csv").write_bytes(b"\x80\x00")
    with pytest.raises(InputError, match=r"binary.csv: encoding must be UTF-8, not 'byte 0x80'"):
        read_operations(tmp_path / "binary.csv", CONFIG)


def test_results_and_labels(tmp_path):
    operations = read_operations(written(tmp_path, "get,7,", "put,8,1", "delete,9,"), CONFIG)
    values = np.zeros((3, 16), np.uint8)
    values[0, :2] = 1, 2
    statuses = np.array([Status.HIT, Status.INSERTED, Status.MISS], np.uint8)
    results = OperationResults(statuses=statuses, keys=operations.keys, values=values)
    write_results(tmp_path / "results.csv", operations.codes, results)
    assert (tmp_path / "results.csv").read_text().splitlines() == [
        "op,key,status,value",
        "get,7,hit,0x" + "0201".zfill(32),
        "put,8,inserted,",
        "delete,9,miss,",
    ]
    unknown = replace(results, statuses=np.array([200, 6, 1], np.uint8))
    write_results(tmp_path / "results.csv", np.array([5, 2, 255], np.uint8), unknown)
    assert (tmp_path / "results.csv").read_text().splitlines()[1:] == [
        "5,7,200,",
        "put,8,malformed,",
        "255,9,miss,",
    ]
    unread = replace(results, statuses=np.array([UNVERIFIED, 2, UNVERIFIED], np.uint8))
    write_results(tmp_path / "results.csv", operations.codes, unread)
    assert (tmp_path / "results.csv").read_text().splitlines()[1:] == [
        "get,,unverified,",
        "put,8,inserted,",
        "delete,,unverified,",
    ]
    write_labels(tmp_path / "labels.csv", [[3], [], [4, 5]])
    assert (tmp_path / "labels.csv").read_text() == "labels\n3\n\n4,5\n"
