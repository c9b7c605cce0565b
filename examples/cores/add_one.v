// A design of one's own around both DMAs: every byte of a range of memory, plus 1, to another range.
//
// The two halves of the port m_axi are one AXI4 manager, with the names by which Vivado infers an interface.
`default_nettype none
/* verilator lint_off PINCONNECTEMPTY */ // outputs without a use here are left open

module add_one (
    input  wire         clk,
    input  wire         rst,
    input  wire         i_job_valid,
    output wire         i_job_ready,
    input  wire [95:0]  i_job_payload,   // {length in bytes, target, source}
    output wire         o_done_valid,    // one for each job, in order
    input  wire         o_done_ready,
    output wire         o_done_payload,  // 1 after an error
    output wire         m_axi_arvalid,
    input  wire         m_axi_arready,
    output wire [31:0]  m_axi_araddr,
    output wire [7:0]   m_axi_arlen,
    output wire         m_axi_arid,
    output wire [2:0]   m_axi_arsize,
    output wire [1:0]   m_axi_arburst,
    output wire         m_axi_arlock,
    output wire [3:0]   m_axi_arcache,
    output wire [2:0]   m_axi_arprot,
    output wire [3:0]   m_axi_arqos,
    output wire [3:0]   m_axi_arregion,
    input  wire         m_axi_rvalid,
    output wire         m_axi_rready,
    input  wire [63:0]  m_axi_rdata,
    input  wire [1:0]   m_axi_rresp,
    input  wire         m_axi_rlast,
    input  wire         m_axi_rid,
    output wire         m_axi_awvalid,
    input  wire         m_axi_awready,
    output wire [31:0]  m_axi_awaddr,
    output wire [7:0]   m_axi_awlen,
    output wire         m_axi_awid,
    output wire [2:0]   m_axi_awsize,
    output wire [1:0]   m_axi_awburst,
    output wire         m_axi_awlock,
    output wire [3:0]   m_axi_awcache,
    output wire [2:0]   m_axi_awprot,
    output wire [3:0]   m_axi_awqos,
    output wire [3:0]   m_axi_awregion,
    output wire         m_axi_wvalid,
    input  wire         m_axi_wready,
    output wire [63:0]  m_axi_wdata,
    output wire [7:0]   m_axi_wstrb,
    output wire         m_axi_wlast,
    input  wire         m_axi_bvalid,
    output wire         m_axi_bready,
    input  wire [1:0]   m_axi_bresp,
    input  wire         m_axi_bid
);
    wire [31:0] source, target, length;
    assign {length, target, source} = i_job_payload;

    // A job is a command for both; valid of neither waits for its own ready, so both take it in one cycle.
    wire read_ready, write_ready;
    assign i_job_ready = read_ready & write_ready;

    // Words are packed from byte 0 on both sides; the rest of a job's last word is ignored.
    wire        word_valid, word_ready, word_last;
    wire [63:0] word;
    wire [7:0]  word_keep;
    wire [63:0] sum;
    genvar n;
    generate
        for (n = 0; n < 8; n = n + 1) begin : adders
            assign sum[8*n +: 8] = word[8*n +: 8] + 8'd1;
        end
    endgenerate

    loomwork_read_dma reader (
        .clk(clk),
        .rst(rst),
        .command_valid(i_job_valid & write_ready),
        .command_ready(read_ready),
        .command_payload({length, source}),
        .o_valid(word_valid),
        .o_ready(word_ready),
        .o_payload({word_last, word_keep, word}),
        .bytes_useful(),
        .bytes_bus(),
        .busy(),
        .error(),
        .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(m_axi_arready),
        .m_axi_araddr(m_axi_araddr),
        .m_axi_arlen(m_axi_arlen),
        .m_axi_arid(m_axi_arid),
        .m_axi_arsize(m_axi_arsize),
        .m_axi_arburst(m_axi_arburst),
        .m_axi_arlock(m_axi_arlock),
        .m_axi_arcache(m_axi_arcache),
        .m_axi_arprot(m_axi_arprot),
        .m_axi_arqos(m_axi_arqos),
        .m_axi_arregion(m_axi_arregion),
        .m_axi_rvalid(m_axi_rvalid),
        .m_axi_rready(m_axi_rready),
        .m_axi_rdata(m_axi_rdata),
        .m_axi_rresp(m_axi_rresp),
        .m_axi_rlast(m_axi_rlast),
        .m_axi_rid(m_axi_rid)
    );

    loomwork_write_dma writer (
        .clk(clk),
        .rst(rst),
        .command_valid(i_job_valid & read_ready),
        .command_ready(write_ready),
        .command_payload({length, target}),
        .i_valid(word_valid),
        .i_ready(word_ready),
        .i_payload(sum),
        .done_valid(o_done_valid),
        .done_ready(o_done_ready),
        .done_payload(o_done_payload),
        .bytes_useful(),
        .bytes_bus(),
        .busy(),
        .error(),
        .m_axi_awvalid(m_axi_awvalid),
        .m_axi_awready(m_axi_awready),
        .m_axi_awaddr(m_axi_awaddr),
        .m_axi_awlen(m_axi_awlen),
        .m_axi_awid(m_axi_awid),
        .m_axi_awsize(m_axi_awsize),
        .m_axi_awburst(m_axi_awburst),
        .m_axi_awlock(m_axi_awlock),
        .m_axi_awcache(m_axi_awcache),
        .m_axi_awprot(m_axi_awprot),
        .m_axi_awqos(m_axi_awqos),
        .m_axi_awregion(m_axi_awregion),
        .m_axi_wvalid(m_axi_wvalid),
        .m_axi_wready(m_axi_wready),
        .m_axi_wdata(m_axi_wdata),
        .m_axi_wstrb(m_axi_wstrb),
        .m_axi_wlast(m_axi_wlast),
        .m_axi_bvalid(m_axi_bvalid),
        .m_axi_bready(m_axi_bready),
        .m_axi_bresp(m_axi_bresp),
        .m_axi_bid(m_axi_bid)
    );

    wire unused = &{1'b0, word_last, word_keep};
endmodule

/* verilator lint_on PINCONNECTEMPTY */
`default_nettype wire
