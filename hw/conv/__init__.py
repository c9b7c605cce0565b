"""Convolution, plain or deformable: any sampling pattern at a fixed rate, int8 in and out.

A map lies in memory pixel by pixel; a pixel is ``ceil(C / L)`` **words** of L channels.  Offsets are shared
by the channels of a group, so a word is what is fetched, sampled and multiplied at once: irregularity is in
addresses only.  Number formats are in ``docs/conv.md``::

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

A job runs one of four routes through it: depthwise, pointwise, depthwise then pointwise, or the reverse.
Kernels larger than 1 x 1 that are not depthwise are sampled tap by tap, and the samples are the pointwise
array's input.

**No bank conflict.**  The bank of a pixel is the parity of its row and of its column, so that the four
neighbours of any point lie in four banks: one read of each gives a bilinear sample, whatever the offsets.

**Unbounded offsets.**  Where the line buffer cannot hold what offsets reach, each row of results has a window
of rows, which depends on the job alone.  Offsets are looked at on their way into their store; neighbours
outside of the window are fetched one by one from memory, and a pixel waits until it has them.

**Room before asking.**  Words are read from memory only when there is room for them where they go (`tokens`),
so that streams that share a memory port never wait for each other.
"""
