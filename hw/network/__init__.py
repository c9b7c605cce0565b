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
products, `vector` pools and element-wise work.

A `program` has a step for each command, and an image that a launch loads into the tables of the `kernel`.
Its sequencer starts a step's command when the transfers that it waits for are complete.  Tap rows and packets
of weights run ahead of the commands.

The matrix unit takes a cycle for a pixel, or two, of each 64 inputs of each 64 columns, and at least 17 for a
packet (`matrix.timing`); the vector unit a cycle a word (`vector.timing`).  The array begins with a command
while the results of the one before leave.  Results are int8, or int16 of two words a pixel.
"""
