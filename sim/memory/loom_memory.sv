// A memory behind PORTS AXI4 ports, modelled in C++ (model.h); one DPI-C call a clock edge for all ports.
//
// Every signal is a vector with port 0 in the low bits: port p's `awaddr` is awaddr[p*ADDR_BITS +: ADDR_BITS].
// The clock is the kernel's.  The model runs in clocks of its own and crosses by simulated time, which it counts
// in edges of `clk`; the period, the model's kind and its timing come from the text file that the environment
// variable LOOM_MEMORY_CONFIG names (sim/memory/config.py writes it), from the section called NAME.
//
// All outputs are registers.  The call at one edge computes what the kernel samples at the next, so the boundary
// adds no latency: a read accepted at edge n whose data are modelled to come k clocks later is sampled at n + k.
//
// A kernel that lacks a channel ties its valid to 0 and leaves the rest unconnected at 0; size and burst must be
// tied to full width and INCR, and are checked.

module loom_memory #(
    parameter string NAME = "hbm",
    parameter int PORTS = 1,
    parameter int ADDR_BITS = 64,
    parameter int DATA_BITS = 256,
    parameter int ID_BITS = 1,
    parameter bit [PORTS-1:0] CONSTANT = '0  // ports whose data are 0
) (
    input bit clk,
    input bit rst_n,

    input  bit [PORTS-1:0]             awvalid,
    output bit [PORTS-1:0]             awready,
    input  bit [PORTS*ADDR_BITS-1:0]   awaddr,
    input  bit [PORTS*8-1:0]           awlen,
    input  bit [PORTS*3-1:0]           awsize,
    input  bit [PORTS*2-1:0]           awburst,
    input  bit [PORTS*ID_BITS-1:0]     awid,

    input  bit [PORTS-1:0]             wvalid,
    output bit [PORTS-1:0]             wready,
    input  bit [PORTS*DATA_BITS-1:0]   wdata,
    input  bit [PORTS*DATA_BITS/8-1:0] wstrb,
    input  bit [PORTS-1:0]             wlast,

    output bit [PORTS-1:0]             bvalid,
    input  bit [PORTS-1:0]             bready,
    output bit [PORTS*2-1:0]           bresp,
    output bit [PORTS*ID_BITS-1:0]     bid,

    input  bit [PORTS-1:0]             arvalid,
    output bit [PORTS-1:0]             arready,
    input  bit [PORTS*ADDR_BITS-1:0]   araddr,
    input  bit [PORTS*8-1:0]           arlen,
    input  bit [PORTS*3-1:0]           arsize,
    input  bit [PORTS*2-1:0]           arburst,
    input  bit [PORTS*ID_BITS-1:0]     arid,

    output bit [PORTS-1:0]             rvalid,
    input  bit [PORTS-1:0]             rready,
    output bit [PORTS*DATA_BITS-1:0]   rdata,
    output bit [PORTS*2-1:0]           rresp,
    output bit [PORTS-1:0]             rlast,
    output bit [PORTS*ID_BITS-1:0]     rid
);
  // Layout of what crosses the boundary, in 32-bit words a port; model.h has the same numbers.
  localparam int DataWords = DATA_BITS / 32;
  localparam int StrobeWords = (DATA_BITS / 8 + 31) / 32;
  localparam int RequestWords = 7 + StrobeWords + DataWords;
  localparam int ResponseWords = 2 + DataWords;

  import "DPI-C" function chandle loom_open(input string name, input int ports, input int data_bits);
  import "DPI-C" function int loom_dpi_cycle(
      input chandle memory, input bit reset, input bit [31:0] request[], output bit [31:0] response[]);

  chandle memory;
  bit [31:0] request[PORTS*RequestWords];
  bit [31:0] response[PORTS*ResponseWords];

  initial begin
    memory = loom_open(NAME, PORTS, DATA_BITS);
    if (memory == null) $fatal(1, "memory %s could not be opened; the reason is printed above", NAME);
  end

  always @(posedge clk) begin
    for (int p = 0; p < PORTS; p++) begin
      request[p*RequestWords+0] = {26'b0, wlast[p], rready[p], arvalid[p], bready[p], wvalid[p], awvalid[p]};
      if (awvalid[p] || arvalid[p]) begin
        request[p*RequestWords+1] = {
          6'b0, arburst[p*2+:2], awburst[p*2+:2], arsize[p*3+:3], awsize[p*3+:3], arlen[p*8+:8], awlen[p*8+:8]};
        request[p*RequestWords+2] = {16'(arid[p*ID_BITS+:ID_BITS]), 16'(awid[p*ID_BITS+:ID_BITS])};
        {request[p*RequestWords+4], request[p*RequestWords+3]} = 64'(awaddr[p*ADDR_BITS+:ADDR_BITS]);
        {request[p*RequestWords+6], request[p*RequestWords+5]} = 64'(araddr[p*ADDR_BITS+:ADDR_BITS]);
      end
      if (!CONSTANT[p] && wvalid[p]) begin
        for (int w = 0; w < StrobeWords; w++)
          request[p*RequestWords+7+w] = 32'(wstrb[p*DATA_BITS/8+:DATA_BITS/8] >> (32*w));
        for (int w = 0; w < DataWords; w++)
          request[p*RequestWords+7+StrobeWords+w] = wdata[p*DATA_BITS+32*w+:32];
      end
    end
    // 0: nothing at the outputs has changed.
    if (loom_dpi_cycle(memory, !rst_n, request, response) != 0) begin
      for (int p = 0; p < PORTS; p++) begin
        {rresp[p*2+:2], bresp[p*2+:2], rlast[p], rvalid[p], arready[p], bvalid[p], wready[p], awready[p]}
            <= response[p*ResponseWords+0][9:0];
        bid[p*ID_BITS+:ID_BITS] <= ID_BITS'(response[p*ResponseWords+1][15:0]);
        rid[p*ID_BITS+:ID_BITS] <= ID_BITS'(response[p*ResponseWords+1][31:16]);
        if (!CONSTANT[p] && response[p*ResponseWords+0][4])
          for (int w = 0; w < DataWords; w++)
            rdata[p*DATA_BITS+32*w+:32] <= response[p*ResponseWords+2+w];
      end
    end
  end
endmodule
