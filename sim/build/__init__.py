"""From Verilog to a simulator or to counted cells: tools, caches, builds."""
