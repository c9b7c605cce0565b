"""The attention unit: the core of the attention engine, fed from the scratchpad.

A command is some heads of one segment, with int8 queries, keys, values and results (`AttentionFields`)::

    command -+-> q, k, v walks -> requests -> scratchpad -+-> queries ------------+
             |                                            +-> buffer of keys -----+
             |                                            +-> buffer of values ---+
             |                                                                    v
             +-> passes -+-> commands, rows, tiles ----------------------------> core -> writer
             |           +-> spans of the buffers                                          ^
             +-> o walk -> places of results ----------------------------------------------+

A **pass** is up to R queries of a head against the keys that they see (`hw.attention.core.command`).  A
buffer holds the keys or values of a head for all its passes, and takes those of the next head as the last
pass frees it.  So a word of the scratchpad is read once: 3 words a token and head, and one or two written.

Each walk has a queue of commands of its own.  Keys of the next command are read while results of the one
before leave, and the core loses no cycle between heads or commands.

A pass takes as many cycles as it has keys, unless it has fewer than queries, beats of results, or 16 cycles
for the merge of each tile of keys.  A last tile of fewer than 8 keys behind whole tiles counts as 8.
`timing.steps` adds this up, and `timing.cycles` the latency of a command that comes alone::

    command to its first query                                           18
    R queries                                                            16
    keys of all passes but the last, and those of its whole tiles
    from a tile's last key to its first value                            14
    values of the last tile                                              32
    merge, division and normalization of 32 elements                     38
    results of R rows                                                    16
    to ``done``                                                           9

A segment has up to ``tokens`` of `config.AttentionUnitConfig`; causal attention has no more queries than
keys, so every query sees a key.
"""
