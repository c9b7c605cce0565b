// Sums of a row's lanes, added up from a factor and the vector of the cycle before, and those that are finished; see
// lanes.cpp.
//
// With TURNS there is one sum a lane in a multiplier's P and others that take turns there, a factor's effect is four
// cycles behind it; without, one for each part, and the effect is a cycle later.
module LoomSums #(
    parameter int LANES = 64,
    parameter int FOLDS = 2,
    parameter int TURNS = 1,
    parameter int BITS = 33,
    parameter int MERGE_LANES = 4
) (
    input  bit                        clk,
    input  bit                        rst,
    input  bit [         LANES*8-1:0] value,
    input  bit [                31:0] factor,
    input  bit [                 2:0] part,
    input  bit [                 2:0] last_part,
    input  bit                        turn,
    input  bit                        first,
    input  bit                        ends,
    input  bit                        last,
    input  bit                        merge_begins,
    input  bit [                 7:0] merge_step,
    output bit [MERGE_LANES*BITS-1:0] partial
);
  // Calls as C++ text: see LoomDots.sv.
  localparam int Words = (MERGE_LANES * BITS + 63) / 64;
  longint sums;
  bit [Words*64-1:0] words;
  bit changed;
  bit [9:0] step;

  initial
    sums = $c64("({ long long loom_sums_open(int, int, int, int, int); loom_sums_open(", LANES, ", ", FOLDS, ", ", BITS,
                ", ", MERGE_LANES, ", ", TURNS, "); })");

  assign step = {last, ends, first, turn, last_part, part};
  always @(posedge clk) begin
    changed = 1'($c32("({ int loom_sums(long long, int, const unsigned*, int, int, int, int); loom_sums(",
                      sums, ", ", rst, ", ", value, ", ", factor, ", ", step, ", ", merge_begins, ", ", merge_step,
                      "); })"));
    if (changed)
      for (int n = 0; n < Words; n++)
        words[n*64+:64] <= $c64("({ long long loom_sums_word(long long, int); loom_sums_word(", sums, ", ", n, "); })");
  end
  assign partial = words[MERGE_LANES*BITS-1:0];
endmodule
