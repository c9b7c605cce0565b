"""Steps of converting components to Verilog: Amaranth's netlist, and Yosys."""
