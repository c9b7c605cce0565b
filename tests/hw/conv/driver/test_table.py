"""Layer tables: rows that are read, and tables that are refused."""

import pytest

from hw.conv.driver.table import read_table
from hw.errors import InputError

HEAD = "name,kind,H,Cin,Cout,K,s,g,OH\n"
WIDE = "name,kind,H,Cin,Cout,K,s,g,OH,W,OW,d,p\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,kind\na,dw\n", "must be the columns name, kind, H"),
        (HEAD, "layers of .* must be at least 1, not 0"),
        (
            HEAD + "a,lstm,4,4,4,3,1,4,4\n",
            r"kind \(.*line 2, layer a\) must be one of conv, pw, dw, ddw, not 'lstm'",
        ),
        (
            HEAD + "a,dw,x,4,4,3,1,4,4\n",
            r"H \(.*line 2, layer a\) must be a whole number of at least 1, not 'x'",
        ),
        (HEAD + "a,dw,4,4,4,3,1,4,3\n", r"OH \(.*line 2, layer a\) must be 4, H by s, not 3"),
        (HEAD + "a,dw,4,4,4,3,1,4,4\na,dw,4,4,4,3,1,4,4\n", r"name \(.*line 3\) must be used once, not 'a'"),
        (HEAD + "a,dw,٤,4,4,3,1,4,4\n", r"H \(.*line 2, layer a\) must be a whole number of at least 1"),
        (
            HEAD + "a,dw,4,4,4,3,1,4," + 5000 * "4",
            r"OH \(.*line 2, layer a\) must be a whole number of at least",
        ),
        (
            HEAD + "a,dw,,4,4,3,1,4,4\n",
            r"H \(.*line 2, layer a\) must be a whole number of at least 1, not ''",
        ),
        (HEAD + ",dw,4,4,4,3,1,4,4\n", r"name \(.*line 2\) must be a name of printable"),
        (HEAD + "file,dw,4,4,4,3,1,4,4\n", r"name \(.*line 2\) must be a name of printable"),
        (HEAD + "a,dw,4,4,4,3,1,4\n", r"cells \(.*line 2\) must be 9, one for each column, not 8"),
        (HEAD + "a,dw,4,4,4,3,1,4,4,4\n", r"cells \(.*line 2\) must be 9, one for each column, not 10"),
        (HEAD + 'a,dw,"4,4,4,3,1,4,4\n', r"line 2 of .* must be of comma-separated values"),
        (HEAD.replace("s,", "S,"), "must be the columns name, .*; s missing"),
        (HEAD.replace("OH", "OH,pad"), "column of .* must be one of name, kind, .*, not 'pad'"),
        (HEAD.replace("OH", "OH,H"), "column of .* must be there once, not 'H'"),
        (HEAD + "a,dw,4,4,4,3,1,1,4\n", r"g \(.*line 2, layer a\) must be 4, Cin"),
        (HEAD + "a,ddw,4,4,8,3,1,4,4\n", r"Cout \(.*line 2, layer a\) must be 4, Cin"),
        (HEAD + "a,pw,4,4,4,3,1,1,4\n", r"K \(.*line 2, layer a\) must be 1 without padding"),
        (HEAD + "a,conv,4,4,6,3,1,4,4\n", r"g \(.*line 2, layer a\) must be a divisor of 6, Cout"),
        (WIDE + "a,dw,4,4,4,3,1,4,4,8,7,,\n", r"d \(.*line 2, layer a\) must be a whole number"),
        (WIDE + "a,dw,4,4,4,3,1,4,4,8,7,1,1\n", r"OW \(.*line 2, layer a\) must be 8, what W, K, s, d and p"),
        (WIDE + "a,dw,4,4,4,3,1,4,4,8,8,1,1x1x1\n", r"p \(.*line 2, layer a\) must be a whole number, two"),
        (
            WIDE + "a,dw,4,4,4,1x2x3,1,4,4,8,8,1,1\n",
            r"K \(.*line 2, layer a\) must be a whole number, or two",
        ),
        (
            HEAD[:-1] + ",macs\na,dw,4,4,4,3,1,4,4,99\n",
            r"macs \(.*line 2, layer a\) must be 576, as the other",
        ),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, message):
    path = tmp_path / "layers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(path)


def test_files_without_text_are_refused(tmp_path):
    path = tmp_path / "layers.csv"
    path.write_bytes(f"\ufeff{HEAD}a,dw,4,4,4,3,1,4,4\n".encode())  # as a spreadsheet saves UTF-8
    assert [row.name for row in read_table(path)] == ["a"]
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(InputError, match=r"table of layers must be a \.csv file, not"):
        read_table(path)
