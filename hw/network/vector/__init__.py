"""The vector unit: pools, sums, products, tables and softmax, 64 bytes a cycle.

A command's loops are rows, words, pixels, columns of the window and its rows (`layouts.VectorFields`)::

    command -> walker -> requests -> scratchpad -> step -> lanes ------------> results -> scratchpad
                 | steps, places of results ---------^  |                      ^
                 tap rows                               +-> factors, tables    |
                                                        +-> softmax -----------+

Each arrow is a stream; the lanes have no handshakes.  A step is taken only when its result has a place in the
queue of results, so that nothing stalls behind it.

Cycles of a step, from its request on:

* 4 to the queue of requests: row of the window, address and column, bounds, queue;
* `GranuleReader.LATENCY` in the scratchpad;
* to the queue of results 4 for a maximum or a table, 11 for an addition, 17 for a mean or a product
  (`lanes`);
* 1 in this queue, then the scratchpad's.

A word takes a step in element-wise work.  A window takes a step for each two columns of each of its rows:
both ports read.  Overlapping windows of a maximum keep the columns that they share, so 3 x 3 at stride 2
takes 3 steps instead of 9.  A softmax reads its row three times, 8 cycles a word, and divides for 83 cycles.
Then each result is an exact product, rounded once.

`timing.cycles` returns the cycles of a command.  Conflicts of the unit's own two ports at the banks, which
are rare, and other users of the scratchpad come on top.
"""
