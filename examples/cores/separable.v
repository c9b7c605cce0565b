// A design of one's own around the convolution core: one layer pair with its weights on chip, frame by frame.
//
// separable.vh has the commands and the weights of a frame, as constants.  `python -m examples.cores.vectors
// separable -o FOLDER` writes it.
`default_nettype none
/* verilator lint_off PINCONNECTEMPTY */ // outputs without a use here are left open

module separable (
    input  wire         clk,
    input  wire         rst,
    input  wire         i_frame_valid,    // a frame follows; the payload is not used
    output wire         i_frame_ready,
    input  wire         i_frame_payload,
    input  wire         i_valid,          // words of the frame
    output wire         i_ready,
    input  wire [127:0] i_payload,
    output wire         o_valid,          // words of the results
    input  wire         o_ready,
    output wire [127:0] o_payload
);
`include "separable.vh"

    // A bit for each command that the core has not taken.
    localparam integer PORTS = 10;
    reg  [PORTS-1:0] waiting;
    wire [PORTS-1:0] ready;
    reg  [15:0]  tap_at, tile_at;
    wire         tap_ready, tile_ready;
    wire         tap_valid  = tap_at != TAP_BEATS[15:0];
    wire         tile_valid = tile_at != TILE_BEATS[15:0];
    wire         begins     = i_frame_valid & i_frame_ready;

    assign i_frame_ready = waiting == 0 && !tap_valid && !tile_valid;

    always @(posedge clk) begin
        waiting <= waiting & ~ready;
        if (tap_valid & tap_ready) tap_at <= tap_at + 1'b1;
        if (tile_valid & tile_ready) tile_at <= tile_at + 1'b1;
        if (begins) begin
            waiting <= {PORTS{1'b1}};
            tap_at  <= 0;
            tile_at <= 0;
        end
        if (rst) begin
            waiting <= 0;
            tap_at  <= TAP_BEATS[15:0];
            tile_at <= TILE_BEATS[15:0];
        end
    end

    loomwork_conv_core core (
        .clk(clk),
        .rst(rst),
        .tap_valid(waiting[0]),
        .tap_ready(ready[0]),
        .tap_payload(TAP),
        .block_valid(waiting[1]),
        .block_ready(ready[1]),
        .block_payload(BLOCK),
        .sweep_valid(waiting[2]),
        .sweep_ready(ready[2]),
        .sweep_payload(SWEEP),
        .drain_valid(waiting[3]),
        .drain_ready(ready[3]),
        .drain_payload(DRAIN),
        .source_turns_0_valid(waiting[4]),
        .source_turns_0_ready(ready[4]),
        .source_turns_0_payload(SOURCE_TURNS_0),
        .source_turns_1_valid(waiting[5]),
        .source_turns_1_ready(ready[5]),
        .source_turns_1_payload(SOURCE_TURNS_1),
        .source_turns_2_valid(waiting[6]),
        .source_turns_2_ready(ready[6]),
        .source_turns_2_payload(SOURCE_TURNS_2),
        .sink_turns_0_valid(waiting[7]),
        .sink_turns_0_ready(ready[7]),
        .sink_turns_0_payload(SINK_TURNS_0),
        .sink_turns_1_valid(waiting[8]),
        .sink_turns_1_ready(ready[8]),
        .sink_turns_1_payload(SINK_TURNS_1),
        .sink_turns_2_valid(waiting[9]),
        .sink_turns_2_ready(ready[9]),
        .sink_turns_2_payload(SINK_TURNS_2),
        .tap_weights_valid(tap_valid),
        .tap_weights_ready(tap_ready),
        .tap_weights_payload(TAP_WEIGHTS[128*tap_at +: 128]),
        .tile_weights_valid(tile_valid),
        .tile_weights_ready(tile_ready),
        .tile_weights_payload(TILE_WEIGHTS[128*tile_at +: 128]),
        .i_valid(i_valid),
        .i_ready(i_ready),
        .i_payload(i_payload),
        .o_valid(o_valid),
        .o_ready(o_ready),
        .o_payload(o_payload),
        // No offsets, no bypass; no command asks for tokens.
        .offset_valid(1'b0),
        .offset_ready(),
        .offset_payload(64'd0),
        .bypass_block_valid(1'b0),
        .bypass_block_ready(),
        .bypass_block_payload(42'd0),
        .bypass_cut_valid(1'b0),
        .bypass_cut_ready(),
        .bypass_cut_payload(38'd0),
        .bypass_valid(1'b0),
        .bypass_ready(),
        .bypass_payload(128'd0),
        .offsets_valid(1'b0),
        .offsets_ready(),
        .offsets_payload(40'd0),
        .row_token_valid(),
        .row_token_ready(1'b1),
        .row_token_payload(),
        .block_token_valid(),
        .block_token_ready(1'b1),
        .block_token_payload(),
        .bypass_token_valid(),
        .bypass_token_ready(1'b1),
        .bypass_token_payload(),
        .activity()
    );

    wire unused = &{1'b0, i_frame_payload};
endmodule

/* verilator lint_on PINCONNECTEMPTY */
`default_nettype wire
