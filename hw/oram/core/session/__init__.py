"""What is sealed between the map and its user: the keys, commands opened, responses sealed.

A record has the same form both ways: 8 bytes sequence number, 8 bytes flags, the tag, then the sealed text,
and zeros up to whole beats.  Its blocks from the second on are what `hw.oram.core.crypto` takes for a page::

    block   0            1     2                      3, 4, ...
            sequence,    tag   code or status, key    value
            flags
"""
