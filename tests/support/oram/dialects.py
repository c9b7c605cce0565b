"""Files of operations from various programs and people, with keys of 64 bits and values of 16 bytes."""

#: Dialects of the file: its bytes, and keys and values, or the words of a refusal.
DIALECTS = {
    "plain": (b"op,key,value\nput,1,2\nget,1,\n", [(2, 1, 2), (1, 1, 0)]),
    "mark of UTF-8, CRLF": (b"\xef\xbb\xbfop,key,value\r\nput,1,2\r\n", [(2, 1, 2)]),
    "carriage returns": (b"op,key,value\rput,1,2\rget,1,", [(2, 1, 2), (1, 1, 0)]),
    "no end of line": (b"op,key,value\nget,1,", [(1, 1, 0)]),
    "quotes": (b'op,"key",value\n"put","1","2"\n', [(2, 1, 2)]),
    "leading zeros": (b"op,key,value\nput,007,0x0" + b"0" * 200 + b"Ff\n", [(2, 7, 255)]),
    "largest": (b"op,key,value\nget," + str(2**64 - 1).encode() + b",\n", [(1, 2**64 - 1, 0)]),
    "UTF-16": ("op,key,value\nput,1,2\n".encode("utf-16"), "encoding must be UTF-8, not 'UTF-16'"),
    "Latin-1": (b"op,key,value\nget,\xe9,\n", "encoding must be UTF-8, not 'byte 0xe9'"),
    "nothing": (b"", "columns must be op,key,value, not ''"),
    "header alone": (b"op,key,value\n", "operations must be at least 1, not 0"),
    "no header": (b"put,1,2\n", "columns must be op,key,value, not 'put,1,2'"),
    "upper case header": (b"OP,KEY,VALUE\nput,1,2\n", "columns must be"),
    "semicolons": (b"op;key;value\nput;1;2\n", "columns must be"),
    "other order": (b"key,value,op\n1,2,put\n", "columns must be"),
    "open quote": (b'op,key,value\nput,1,"2\n', "line 2: fields must be separated by commas, quotes closed"),
    "text behind a quote": (b'op,key,value\nput,1,"2"3\n', "line 2: fields must be"),
    "long field": (b"op,key,value\nput,1," + b"1" * 200_000 + b"\n", "line 2: fields must be"),
    "empty line": (b"op,key,value\nput,1,2\n\n", "line 3: fields must be 3: op,key,value, not 0"),
    "short": (b"op,key,value\nget,1\n", "line 2: fields must be 3"),
    "long": (b"op,key,value\nput,1,2,3\n", "line 2: fields must be 3"),
    "remark": (b"op,key,value\n# x\n", "line 2: fields must be 3"),
    "upper case op": (b"op,key,value\nPUT,1,2\n", "line 2: op must be one of nop, get"),
    "unknown op": (b"op,key,value\nupdate,1,2\n", "line 2: op must be"),
    "no value": (b"op,key,value\nput,1,\n", "line 2: value must be a whole number below 2^128"),
    "value of get": (b"op,key,value\nget,1,5\n", "line 2: value must be empty for get, not '5'"),
    "value of nop": (b"op,key,value\nnop,1,0\n", "line 2: value must be empty for nop"),
    "value too large": (b"op,key,value\nput,1," + str(2**128).encode() + b"\n", "line 2: value must be"),
    **{
        f"key {key}": (
            f"op,key,value\nput,{key},2\n".encode(), "line 2: key must be a whole number below 2^64"
        )
        for key in (
            "", " 1", "1 ", "+7", "-1", "1_000", "1.0", "1e3", "0XaB", "0x", "0x_1", "0o17", "0b11", "1\0",
            "٣", "²", "0x1" + 16 * "0", "18446744073709551616",
        )
    },
}  # fmt: skip
