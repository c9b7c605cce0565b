// A design of one's own around the attention core: one head, keys and values in RAM, queries as a stream.
//
// A job takes `keys` rows of i_k and of i_v into RAM, then `queries` rows of i_q, and returns a row of
// results for each.  A tile of ROWS queries is a pass: the core sees all keys and values once for each.
// ROWS, LANES and TILE are those of attention.yaml.  The layouts of payloads are in ports.md of the core.
`default_nettype none
/* verilator lint_off PINCONNECTEMPTY */ // outputs without a use here are left open

module one_head #(
    parameter integer ROWS  = 2,
    parameter integer LANES = 16,
    parameter integer TILE  = 16,
    parameter [16:0]  MULTIPLIER = 17'd70000,  // raw score to log2 units: (S * MULTIPLIER) >> SHIFT
    parameter [5:0]   SHIFT      = 6'd18,
    parameter [3:0]   FRACTION   = 4'd6        // bits behind the point of results
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                i_size_valid,
    output wire                i_size_ready,
    input  wire [13:0]         i_size_payload,  // {keys, queries}, 1 to 64 each
    input  wire                i_k_valid,
    output wire                i_k_ready,
    input  wire [8*LANES-1:0]  i_k_payload,
    input  wire                i_v_valid,
    output wire                i_v_ready,
    input  wire [8*LANES-1:0]  i_v_payload,
    input  wire                i_q_valid,
    output wire                i_q_ready,
    input  wire [8*LANES-1:0]  i_q_payload,
    output wire                o_valid,
    input  wire                o_ready,
    output wire [16*LANES-1:0] o_payload
);
    reg  [6:0] queries, keys;         // of the job
    reg  [6:0] left, waiting;         // results and queries that are outstanding
    reg  [6:0] loaded_k, loaded_v;
    wire begins = i_size_valid & i_size_ready;
    wire run    = left != 0 && loaded_k == keys && loaded_v == keys;
    wire o_last;

    assign i_size_ready = left == 0;
    assign i_k_ready    = left != 0 && loaded_k != keys;
    assign i_v_ready    = left != 0 && loaded_v != keys;

    // Keys and values: into RAM once, out of it for every pass.
    reg [8*LANES-1:0] memory_k [0:63];
    reg [8*LANES-1:0] memory_v [0:63];
    always @(posedge clk) begin
        if (i_k_valid & i_k_ready) memory_k[loaded_k[5:0]] <= i_k_payload;
        if (i_v_valid & i_v_ready) memory_v[loaded_v[5:0]] <= i_v_payload;
    end

    wire query_valid, query_ready;
    assign query_valid = i_q_valid & run & (waiting != 0);
    assign i_q_ready   = query_ready & run & (waiting != 0);

    always @(posedge clk) begin
        if (i_k_valid & i_k_ready) loaded_k <= loaded_k + 1'b1;
        if (i_v_valid & i_v_ready) loaded_v <= loaded_v + 1'b1;
        if (query_valid & query_ready) waiting <= waiting - 1'b1;
        if (o_valid & o_ready) left <= left - 1'b1;
        if (begins) begin
            {keys, queries} <= i_size_payload;
            left     <= i_size_payload[6:0];
            waiting  <= i_size_payload[6:0];
            loaded_k <= 0;
            loaded_v <= 0;
        end
        if (rst) begin
            left     <= 0;
            waiting  <= 0;
            loaded_k <= 0;
            loaded_v <= 0;
        end
    end

    // A counter for each input of the core: rest is what it counts that is left, this item among it.
    wire       command_valid, command_ready, empty_valid, empty_ready, row_valid, row_ready;
    wire       tile_valid, tile_ready, key_valid, key_ready, value_valid, value_ready;
    wire [6:0] command_rest, tile_rest, tile_key, key_key, value_key;
    walk #(.STEP(ROWS), .ROWS(ROWS), .TILES(0)) walk_command (.clk(clk), .rst(rst), .begins(begins),
        .run(run), .queries(queries), .keys(keys), .valid(command_valid), .ready(command_ready), .key(),
        .rest(command_rest));
    walk #(.STEP(ROWS), .ROWS(ROWS), .TILES(0)) walk_empty (.clk(clk), .rst(rst), .begins(begins),
        .run(run), .queries(queries), .keys(keys), .valid(empty_valid), .ready(empty_ready), .key(),
        .rest());
    walk #(.STEP(1), .ROWS(ROWS), .TILES(0)) walk_row (.clk(clk), .rst(rst), .begins(begins),
        .run(run), .queries(queries), .keys(keys), .valid(row_valid), .ready(row_ready), .key(), .rest());
    walk #(.STEP(TILE), .ROWS(ROWS), .TILES(1)) walk_tile (.clk(clk), .rst(rst), .begins(begins),
        .run(run), .queries(queries), .keys(keys), .valid(tile_valid), .ready(tile_ready), .key(tile_key),
        .rest(tile_rest));
    walk #(.STEP(1), .ROWS(ROWS), .TILES(1)) walk_key (.clk(clk), .rst(rst), .begins(begins),
        .run(run), .queries(queries), .keys(keys), .valid(key_valid), .ready(key_ready), .key(key_key),
        .rest());
    walk #(.STEP(1), .ROWS(ROWS), .TILES(1)) walk_value (.clk(clk), .rst(rst), .begins(begins),
        .run(run), .queries(queries), .keys(keys), .valid(value_valid), .ready(value_ready),
        .key(value_key), .rest());

    wire [6:0] rows   = command_rest < ROWS[6:0] ? command_rest : ROWS[6:0];
    wire [6:0] here   = tile_rest < TILE[6:0] ? tile_rest : TILE[6:0];
    wire [6:0] last   = here - 7'd1;

    loomwork_attention_core core (
        .clk(clk),
        .rst(rst),
        .i_command_valid(command_valid),
        .i_command_ready(command_ready),
        .i_command_payload({FRACTION, 1'b1, rows[1:0]}),  // 1 x 16 elements of a value
        .i_row_valid(row_valid),
        .i_row_ready(row_ready),
        .i_row_payload({SHIFT, MULTIPLIER, 10'd0, keys, 17'd0}),  // all keys are visible
        .i_query_valid(query_valid),
        .i_query_ready(query_ready),
        .i_query_payload(i_q_payload),
        .i_empty_valid(empty_valid),
        .i_empty_ready(empty_ready),
        .i_empty_payload(1'b0),
        .i_tile_0_valid(tile_valid),
        .i_tile_0_ready(tile_ready),
        .i_tile_0_payload({1'b0, tile_rest <= TILE[6:0], tile_key == 0, last[3:0], 10'd0, tile_key}),
        .i_key_0_valid(key_valid),
        .i_key_0_ready(key_ready),
        .i_key_0_payload(memory_k[key_key[5:0]]),
        .i_value_0_valid(value_valid),
        .i_value_0_ready(value_ready),
        .i_value_0_payload(memory_v[value_key[5:0]]),
        .o_valid(o_valid),
        .o_ready(o_ready),
        .o_payload({o_last, o_payload}),
        .activity(),
        .saturated_logits(),
        .saturated_results()
    );

    wire unused = &{1'b0, o_last, rows[6:2], last[6:4], key_key[6], value_key[6]};
endmodule

/* verilator lint_off DECLFILENAME */ // a small module, for this one alone
// Offers an item for every STEP keys of each pass, or without TILES for every STEP queries.
module walk #(
    parameter integer STEP  = 1,
    parameter integer ROWS  = 2,
    parameter integer TILES = 1
) (
    input  wire       clk,
    input  wire       rst,
    input  wire       begins,
    input  wire       run,
    input  wire [6:0] queries,
    input  wire [6:0] keys,
    output wire       valid,
    input  wire       ready,
    output reg  [6:0] key,
    output wire [6:0] rest
);
    reg  [6:0] query;
    reg        done;
    wire [6:0] passed = query + ROWS[6:0];
    wire       ends   = rest <= STEP[6:0];

    assign valid = run & ~done;
    assign rest  = TILES != 0 ? keys - key : queries - query;

    always @(posedge clk) begin
        if (rst | begins) begin
            query <= 0;
            key   <= 0;
            done  <= rst;
        end else if (valid & ready) begin
            if (TILES == 0) begin
                query <= query + STEP[6:0];
                done  <= ends;
            end else if (ends) begin
                query <= passed;
                key   <= 0;
                done  <= passed >= queries;
            end else begin
                key <= key + STEP[6:0];
            end
        end
    end
endmodule

/* verilator lint_on DECLFILENAME */
/* verilator lint_on PINCONNECTEMPTY */
`default_nettype wire
