"""Static schedules: a network's operators and tensors, planned into a scratchpad and executed by a sequencer.

From a network to execution; each arrow is a pure function from one plain structure to the next::

    ONNX, torch.export, JSON -> graph -> fuse -> tile -> order -> residency -> address -> transfers
                                                                                               |
                              check (independent)  <------------  plan.json  <-----------------+
                                                                      |
    HBM <-> DMA engines <-> scratchpad banks <-> operator ports       +-> lower -> program image, tables
                                                      ^                                    |
                                                      +------------ sequencer <------------+

Time is counted in **steps**: step ``s`` executes one operator (or one pipelined group).  A step has four
phases, in the plan as in the hardware:

1. *slot begins*: every write transfer with ``deadline_step <= s`` is complete;
2. read transfers with ``start_step <= s`` may run;
3. every read transfer with ``deadline_step <= s`` is complete; then the operator computes;
4. *computed*: write transfers with ``start_step <= s`` may run.

An **episode** is a stay of one tensor at one scratchpad address from its ``first_step`` to its ``last_step``,
both included.  A tensor has several when it is spilled or dropped between uses.  A **stream** is a use in
which a tensor passes through a small window of the scratchpad instead of lying there whole.
"""
