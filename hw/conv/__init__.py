"""Convolution, plain or deformable: any sampling pattern at a fixed rate, int8 in and out.

A map lies in memory pixel by pixel; a pixel is ``ceil(C / L)`` **words** of L channels.  The channels of a
group share offsets, so a word is fetched, sampled and multiplied as one: only addresses are irregular. Number
formats are in ``docs/conv-specification.md``::

                        words                                          cycles
    maps ─► cutters ─► Join ─┬────────► Switch ◄───────────────┐
                             │            │                    │
                  ┌──────────┘            ▼                    │
                  │            Depthwise: Fill ─► four banks ─► Sampler ─► LaneCells ─► results
                  │                          │                  ▲  tap: ceil(K K / T) a word;
                  │                          └─► OffsetDot ─► OffsetStore   strip: 1 a word
                  │                       ▼                    │
                  │            Pointwise: Block ─► PA x PE cells, weights at rest ─► OutBuffer
                  ▼                                                   │  a pixel for each tile of weights
               Bypass ───────────────────────────────────────────► Shuffle ─► packers ─► maps

A job takes one of four routes: depthwise, pointwise, depthwise then pointwise, or the reverse. A kernel
larger than 1 x 1 that is not depthwise is sampled tap by tap; the samples are the input of the pointwise
array.

**No bank conflict.**  The parities of a pixel's row and column select its bank.  The four neighbours of any
point lie in four banks, so one read of each bank makes a bilinear sample, whatever the offsets.

**Unbounded offsets.**  Where offsets reach beyond the line buffer, each row of results has a window of rows,
which depends on the job alone.  Offsets are checked on their way into their store.  Neighbours outside the
window are fetched one by one from memory, and the pixel stalls until they have arrived.

**Credit before a request.**  Words are read from memory only when their destination has room for them
(`tokens`), so streams that share a memory port never block each other.

**Timing.**  Each block holds its own latencies, as class constants or ``latency``.  `hw.conv.model.latency`
alone adds them up; nothing else states a latency.
"""
