// An array of multipliers with weights that stay: dot products with one or two vectors a cycle, sums in a memory of
// PIXELS places, results as float32 arithmetic makes them; see matrix.cpp.
//
// `strobes` has a bit for each word of a packet, set while it is on `word`.  `step` is, from its highest bit on: shift
// (3 bits), two, parameters, adopt, last, first, valid.  A result is on `o` LATENCY cycles after its step with `last`.
module LoomMatrix #(
    parameter int INPUTS = 64,
    parameter int COLUMNS = 64,
    parameter int PIXELS = 512,
    parameter int LATENCY = 24
) (
    input  bit                    clk,
    input  bit [    INPUTS*8-1:0] first,
    input  bit [    INPUTS*8-1:0] second,
    input  bit [            15:0] pixel,
    input  bit [             8:0] step,
    input  bit [            63:0] strobes,
    input  bit [  COLUMNS*32-1:0] word,
    output bit [((COLUMNS+3)/4)*64-1:0] o
);
  // Calls as C++ text: see LoomDots.sv.
  longint matrix;
  bit changed;

  initial
    matrix = $c64("({ long long loom_matrix_open(int, int, int, int); loom_matrix_open(", INPUTS, ", ", COLUMNS, ", ",
                  PIXELS, ", ", LATENCY, "); })");

  always @(posedge clk) begin
    changed = 1'($c32("({ int loom_matrix(long long, const unsigned*, const unsigned*, int, int, long long, ",
                      "const unsigned*); loom_matrix(", matrix, ", ", first, ", ", second, ", ", pixel, ", ", step,
                      ", ", strobes, ", ", word, "); })"));
    if (changed)
      for (int n = 0; n < (COLUMNS + 3) / 4; n++)
        o[n*64+:64] <= $c64("({ long long loom_matrix_results(long long, int); loom_matrix_results(", matrix, ", ", n,
                            "); })");
  end
endmodule
