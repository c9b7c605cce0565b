"""Quantized networks: from an ONNX file to the gates that execute it.

::

    ONNX, QDQ or QOperator -> graph -> compile -> plan, commands, packets of weights
                                 |                    |
                         golden operators      golden commands, gates:

    HBM --> weight stream --> matrix <--> scratchpad <--> vector
                                             |
    HBM <-------------- transfers -----------+

`graph` reads operators on integers with their weights; `compile` plans them with the scheduler's planner and
lowers them to `commands`.  `scratchpad` has words of 64 bytes from any 16 bytes on, `matrix` convolutions and
products, `vector` pools, element-wise work and LayerNorm, `attention` the heads of attention.

A `program` has a step for each command, and an image that a launch loads into the tables of the `kernel`: of
commands that overlap, a few records before the first command and the others while commands work.
Its sequencer has a list of commands a core.  It starts the next one when so many commands of each core are
finished, and so many transfers complete, as the command waits for.  A command may follow words that a core
writes.  `program.order` derives these waits from accesses; `check` trusts only them.  Tap rows and packets of
weights run ahead of the commands.

The matrix unit takes a cycle for a pixel, or two, of each 64 inputs of each 64 columns, and at least 17 for a
packet (`matrix.timing`); the vector unit a cycle a word (`vector.timing`).  The array begins with a command
while the results of the one before leave.  Results are int8, or int16 of two words a pixel.
"""
