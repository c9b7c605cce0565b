"""Fused attention: ``o = softmax(scale * q k^T) v`` in one pass over keys and values, int8 in, int16 out.

Number formats are in ``docs/attention.md``.  R query rows stand still in the array; keys and values stream
past, one of each a cycle.  R x D multipliers make scores, as many weigh values, and all are busy in every
cycle::

                          cycles        in every row (AttentionRow), R times
    key ──► KeySide ─────────────► ScoreUnit      dot product, scale        7
                │ 1                    │ logit t
                │ tile complete        ▼
                │ 9 after last ──► LogitBuffer    two tiles of t, maximum M
                ▼                      │ read: 1
    value ► ValueSide ───────────────► Exp2       p = 2^(t - M)             5
                │                      ▼
                │ with p: 6 ────► ValueUnit       sums of p v for a tile    3
                ▼                      │ finished sums of the tile
             Finish ── 8 ────────► Merge          O = (O >> rise) + sums    3, D / lanes steps
                │                      │ last tile only
                ├ 11 ────────────► Reciprocal     1 / l                    11
                ├ 19 ────────────► Normalizer     O / l                     6, D / lanes steps
                ▼                      ▼
    o ◄────── Drain ◄───────────── OutputBuffer   two query tiles of results

Numbers beside the left line are cycles after the key, or after the last value of a tile, at which the stage
starts; those on the right are the stage's own latency (`hw.attention.row.Timing` adds them up).

**Where a cycle goes.**  Only three places can wait: `KeySide` for keys, queries and room in the logit
buffers, `ValueSide` for values, complete tiles and room at the end of a tile, `Drain` for whoever takes
results.  All else takes fixed times, so rows have no handshakes: one control word, the same for all, goes
past them.  Between tiles, query tiles and heads no cycle is lost.  A job of ``passes`` query tiles with
``keys`` each, a multiple of T, takes ``passes * keys + L`` cycles of the core: to load R queries (R + 1),
from the last key to its tile's maximum (9), to weigh the values of that tile (T), to merge, divide and
normalize (D / lanes + 25), and to put out R rows (R * 2 D bytes by the port's width, + 1).  That is L = 292
for R = 32, D = T = 64, two lanes and 256-bit ports.  `hw.attention.cycles` computes any job exactly, and
adds what memory takes at both ends.

**Layers.**  `core` knows no memory: commands and streams in, a stream out.  `movers` turn a job into DMA
commands and streams.  `kernel` has the argument table and the body for the shell; `engine` tells the
generator of it all.
"""
