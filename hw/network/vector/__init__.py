"""The vector unit: pools, sums, products, tables, softmax and LayerNorm, 64 bytes a cycle.

A command's loops are rows, words, pixels, columns of the window and its rows (`layouts.VectorFields`)::

    command -> walker -> requests -> scratchpad -> step -> lanes ------------> results -> scratchpad
                 | steps, places of results ---------^  |                      ^
                 tap rows                               +-> factors, tables    |
                                                        +-> softmax -----------+
                                                        +-> lanes of int16 ----+
                                                              | sums      ^ factors of pixels
                                                              +-> roots --+

Each arrow is a stream; the lanes have no handshakes.  A step is taken only when its result has a place in the
queue of results, so that nothing stalls behind it.

Cycles of a step, from its request on:

* 4 to the queue of requests: row of the window, address and column, bounds, queue;
* `GranuleReader.LATENCY` in the scratchpad;
* to the queue of results 4 for a maximum or a table, 11 for an addition, 17 for a mean or a product
  (`lanes`); on int16 10 for a sum or a mean, 13 for LayerNorm (`wide_lanes`);
* 1 in this queue, then the scratchpad's.

A word takes a step in element-wise work.  A window takes a step for each two columns of each of its rows:
both ports read.  Overlapping windows of a maximum keep the columns that they share, so 3 x 3 at stride 2
takes 3 steps instead of 9.  A softmax reads its row three times, 8 cycles a word, and divides for 83 cycles.
Then each result is an exact product, rounded once.

LayerNorm of int16 (`hw.network.normalization`) takes two commands, or three for results of both widths.
Statistics read a word of 32 values a cycle, in the order in which a product's results are written: tiles of
two words, then pixels.  They write nothing; slope and term of up to 512 pixels stay in the unit.  A LayerNorm
to int8 reads two words and writes one a cycle; one to int16 reads one and writes one.  The same multipliers
square values, normalize them, and make sums and means of int16.

`timing.cycles` returns the cycles of a command.  Conflicts of the unit's own two ports at the banks, which
are rare, and other users of the scratchpad come on top.
"""
