"""Fused attention: ``o = softmax(scale * q k^T) v`` in one pass over keys and values, int8 in.

Number formats are in ``docs/attention.md``.  R query rows stand still in the arrays; keys and values stream
past in S streams, to which they are dealt out one by one, in each a part (of D elements) of a key and one
of a value a cycle.  R x D multipliers a stream make scores, as many weigh values, and all are busy in every
cycle.  A **pass** is one query tile against the keys it sees, in tiles of up to T keys of each stream::

                            cycles      in each stream, for every two rows (AttentionRows)
    query ─► QuerySide ────────────────► ScoreUnit      dot products                     9
    key ───► KeySide ──────────────────►     │ raw score
                │                            ▼
                │ index of the key ────► LogitUnit      scale, cap, slope; who sees it   3
                │ 1                          │ logit t
                │ tile complete              ▼
                │ 15 after its last ───► LogitBuffer    a ring of t, maximum M of each tile
                ▼                            │ read: 1
    value ─► ValueSide ────────────────► Exp2           p = 2^(t - M)                    6
                │                            ▼
                ├ with p: 7 ───────────► ValueUnit      sums of p v for a tile           4
                │                            │ finished sums of the tile
                ├ 10, in turn ─────────► Merge          O = round(O, rise) + sums        3, a step for
                │ pass closed                ▼                            each merge_lanes elements
                │                        Finals         O, l, M of the pass
                │                            │
                │                       for every two rows (ResultRows)
             Finish ── 13: all have ───► Combine        sums of all streams, at one M    5 (one stream: 0)
                │      closed it             ▼
                ├ + 5 ─────────────────► Reciprocal     1 / l                           11
                ├ + 11 ────────────────► Normalizer     O / l                            6, as many steps
                ▼                            ▼
    o ◄────── Drain ◄─────────────────── OutputBuffer   results of four passes

Numbers beside the left line are cycles after a part of a key, or after the last part of a tile's values, at
which the stage starts; those on the right are the stage's own latency.  They are those of the default
configuration; `hw.attention.core.timing.CoreTiming` adds them up for any.

**Where a cycle goes.**  Only four places can wait: `KeySide` for keys, queries and room in the logit buffers,
`ValueSide` for values, complete tiles and room at the end of a tile, `Finish` (with several streams) for the
slowest of them, `Drain` for whoever takes results.  All else takes fixed times, so rows have no handshakes:
one control word, the same for all of a stream, goes past them.  Between tiles, passes, heads and jobs no
cycle is lost as long as

* tiles have as many parts of values as their merges have steps (parts * D / merge_lanes); a tile of fewer
  keys costs nothing behind one of more, for its merge may wait until the next tile's last key,
* a pass has as many parts of keys as its queries have parts, and beats at each of the Q ports that they are
  spread over, as its results have beats at each of their W ports, and as a division takes.

A pass of which no row sees a key goes beside all that: `QuerySide` takes its queries while others compute,
and `Drain` gives zeros for it.

A job of ``passes`` query tiles with ``keys`` each, a multiple of S T, takes ``passes * keys / S + L`` cycles
of the core: to load R queries, from the last key to its tile's maximum (15), to weigh the values of that tile
(T), to merge, combine, divide and normalize (D / merge_lanes + 33; with one stream 26), and to put out R rows
(their bytes by the width of the ports of results, + 3).  That is L = 131 for R = 16, D = 64, T = 32, four
merge lanes, 16-bit results and four ports of 256 bits.
`hw.attention.model.cycles` computes any job exactly, and adds what memory takes at both ends.

**Decode.**  With the configuration's ``decode`` a job may give each pair of rows in each stream, S P in all,
keys of its own, and all of them the same two queries.  They go in lockstep under the control of stream 0;
what they have of a pass is gathered in the results of the first two rows, one pair after another::

    keys, values of S P ports ─► PartReader x S P ─► Lockstep ─► all cells ─► Gather ─► Reciprocal ...

Readers keep what one pass has read for the next one, of other query heads on the same keys, if it fits.  A
pass takes no less than its gathering does: P cycles for each merge_lanes elements, and about 2 for shifts,
130 in all for the default and 64 elements; its maxima and sums, 2 P cycles, go beside the pass before.

**Layers.**  `core` knows no memory: commands and streams in, a stream out.  `movers` turn jobs into DMA
commands and streams.  `kernel` has the argument table and the body for the shell; `engine` tells the
generator of it all.
"""
