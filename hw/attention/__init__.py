"""Fused attention: ``o = softmax(scale * q k^T) v`` in one pass over keys and values, int8 in.

Number formats are in ``docs/attention-specification.md``.  R query rows are stationary in the arrays.  Keys
and values pass them in S streams, to which they are dealt one by one. Each stream takes a part (D elements)
of a key and one of a value a cycle.  R x D multipliers a stream compute scores, as many weigh values, and all
are busy in every cycle.  A **pass** is one query tile against the keys it sees, in tiles of up to T keys of
each stream::

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

The left line shows at which cycle a stage starts, after a part of a key or after the last part of a tile's
values. The right column shows the stage's own latency.  The numbers are those of the default configuration.

**Timing.**  `hw.attention.core.timing` adds up the latencies of the core's stages,
`hw.attention.movers.timing` those of the movers.  Gates and model read stage times there and nowhere else.

**Stalls.**  Only four places can stall:

* `KeySide`, for keys, queries and room in the logit buffers,
* `ValueSide`, for values, complete tiles and room at the end of a tile,
* `Finish` with several streams, for the slowest of them,
* `Drain`, for the consumer of results.

All other stages take fixed times, so rows have no handshakes: one control word, shared by all rows of a
stream, passes them.  Between tiles, passes, heads and jobs no cycle is lost under two conditions:

* A tile has as many parts of values as its merges have steps (parts * D / merge_lanes).  A shorter tile
  behind a longer one costs nothing either, as its merge may wait until the next tile's last key.
* A pass has at least as many parts of keys as its queries have parts, or beats at each of the Q ports. It
  also has as many as its results have beats at each of the W ports, and as a division has cycles.

A pass of which no row sees a key runs beside the others. `QuerySide` takes its queries during their
computation, and `Drain` sends zeros for it.

A job of ``passes`` query tiles with ``keys`` each, a multiple of S T, takes ``passes * keys / S + L`` cycles
of the core.  L is the sum of five times:

* the loading of R queries,
* from the last key to its tile's maximum: 15,
* the weighting of the values of that tile: T,
* merge, combination, division and normalization: D / merge_lanes + 33, with one stream + 26,
* the output of R rows: their bytes by the width of the ports of results, + 3.

L = 131 for R = 16, D = 64, T = 32, four merge lanes, 16-bit results and four ports of 256 bits.
`hw.attention.model.cycles` computes any job exactly; `hw.attention.model.launch` adds memory at both ends.

**Decode.** With the configuration's ``decode`` a job may have keys for each pair of rows in each stream, S P
in all. All pairs then have the same two queries. The pairs run in lockstep under the control of stream 0.
Their sums of a pass are gathered in the results of the first two rows, one pair after another::

    keys, values of S P ports ─► PartReader x S P ─► Lockstep ─► all cells ─► Gather ─► Reciprocal ...

Readers keep the keys and values of a pass for the next pass, of other query heads on the same keys, if they
fit.  A pass takes at least the cycles of its gathering: P for each merge_lanes elements, and about 2 for
shifts. These are 130 in all for the default and 64 elements.  Its maxima and sums, 2 P cycles, are read
during the pass before.

**Layers.**  `core` knows no memory: commands and streams in, a stream out.  `walk` has the gates from a job
to commands.  `movers` has DMA, caches and streams.  `kernel` has the argument table and the body for the
shell, `driver` the host's tensors, layouts and jobs, `model` the prediction; `engine` is the generator's view
of all.
"""
