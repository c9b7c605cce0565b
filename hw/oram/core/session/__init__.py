"""Sealed messages between the map and its user: keys, command opening, response sealing.

A record has the same form both ways: 8 bytes of sequence number, 8 bytes of flags, the tag, the sealed text,
and zeros up to whole beats. Its blocks from the second on form a page of `hw.oram.core.crypto`::

    block   0            1     2                      3, 4, ...
            sequence,    tag   code or status,        value
            flags              confirmation, key
"""
