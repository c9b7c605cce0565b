// Dot products of one or two rows' vectors, which stay, with one that passes; see lanes.cpp.
//
// `put` is written to `place` of the rows whose bit of `load` is high.  The vector of a cycle meets the one at the
// place that was picked last, in that cycle or before, as it was then; LATENCY cycles later the result is there.
module LoomDots #(
    parameter int ROWS = 2,
    parameter int LANES = 64,
    parameter int PLACES = 4,
    parameter int LATENCY = 9,
    parameter int BITS = 22
) (
    input  bit                   clk,
    input  bit [    LANES*8-1:0] vector,
    input  bit [    LANES*8-1:0] put,
    input  bit [            7:0] place,
    input  bit [       ROWS-1:0] load,
    input  bit                   pick,
    input  bit [            7:0] picked,
    output bit [  ROWS*BITS-1:0] o
);
  // Calls as C++ text, not through DPI: Verilator numbers the temporaries of DPI calls, and then has code for each
  // placement of the cell around this.
  longint dots, found;

  initial
    dots = $c64("({ long long loom_dots_open(int, int, int, int); loom_dots_open(", ROWS, ", ", LANES, ", ", PLACES,
                ", ", LATENCY, "); })");

  always @(posedge clk) begin
    found = $c64("({ long long loom_dots(long long, const unsigned*, const unsigned*, int, int, int, int); loom_dots(",
                 dots, ", ", vector, ", ", put, ", ", place, ", ", load, ", ", pick, ", ", picked, "); })");
    for (int row = 0; row < ROWS; row++) o[row*BITS+:BITS] <= found[row*32+:BITS];
  end
endmodule
