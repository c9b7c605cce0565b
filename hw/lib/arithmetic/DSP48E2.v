// The arithmetic of AMD's DSP48E2 (UG579), as far as generated Verilog uses it: registers at A, B (one or two), C,
// D, behind the pre-adder, the multiplier and the adder, which adds P, C or the cascade's input to the product, this
// one shifted right by 17 bits if need be, and P beside it.
// What is not used is not here, and a parameter or pin that asks for it ends the simulation.
/*verilator lint_off DECLFILENAME*/
/*verilator lint_off UNUSEDPARAM*/
/*verilator lint_off UNUSEDSIGNAL*/
/*verilator lint_off WIDTH*/
/*verilator lint_off VARHIDDEN*/
module DSP48E2 #(
  parameter AMULTSEL = "A",
  parameter integer AREG = 1, ACASCREG = 1, ADREG = 1, BREG = 1, BCASCREG = 1, CREG = 1, DREG = 1, MREG = 1, PREG = 1,
  parameter integer ALUMODEREG = 1, CARRYINREG = 1, CARRYINSELREG = 1, INMODEREG = 1, OPMODEREG = 1
) (
  input CLK,
  input signed [29:0] A, input signed [17:0] B, input signed [47:0] C, input signed [26:0] D,
  input signed [47:0] PCIN,
  input [8:0] OPMODE, input [4:0] INMODE, input [3:0] ALUMODE, input [2:0] CARRYINSEL, input CARRYIN,
  input CEA1, CEA2, CEAD, CEALUMODE, CEB1, CEB2, CEC, CECARRYIN, CECTRL, CED, CEINMODE, CEM, CEP,
  input RSTA, RSTALLCARRYIN, RSTALUMODE, RSTB, RSTC, RSTCTRL, RSTD, RSTINMODE, RSTM, RSTP,
  output signed [47:0] P, output signed [47:0] PCOUT
);
  /*verilator inline_module*/  // with its constants, in the cell that places it
  reg signed [26:0] a, d;
  reg signed [17:0] b;
  reg signed [47:0] c, sum;
  reg [2:0] z;
  reg w;
  wire [2:0] z_now = OPMODEREG == 1 ? z : OPMODE[6:4];
  wire signed [47:0] z_value = z_now == 1 ? PCIN : z_now == 2 ? sum : z_now == 3 ? c : z_now == 5 ? PCIN >>> 17 : 48'sd0;

  wire signed [47:0] w_value = (OPMODEREG == 1 ? w : OPMODE[7]) ? sum : 48'sd0;

  // A and D have registers before the pre-adder, and its sum one behind it, the multiplier's; A alone has that one.
  wire signed [26:0] factor = AMULTSEL == "AD" ? a + d : A[26:0];
  wire signed [44:0] product;
  DSP48E2_MULTIPLIER multiplier (
    .CLK(CLK), .CEA(AMULTSEL == "AD" || CEA2), .A(factor), .B(BREG == 2 ? b : B), .M(product)
  );

  always @(posedge CLK) begin
    if (CEA2) a <= A[26:0];
    if (CED) d <= D;
    b <= B;
    if (CEC) c <= C;
    z <= OPMODE[6:4];
    w <= OPMODE[7];
    sum <= z_value + w_value + product;
  end
  assign P = sum;
  assign PCOUT = sum;

`ifndef SYNTHESIS
  initial begin
    if (AREG != 1 || ADREG != 1 || CREG != 1 || DREG != 1 || MREG != 1 || PREG != 1 || BREG < 1 || BREG > 2
        || ALUMODEREG + CARRYINREG + CARRYINSELREG + INMODEREG != 0 || INMODE != (AMULTSEL == "AD" ? 4 : 0))
      $fatal(1, "a DSP48E2 is used in a way that its model does not have");
  end
  always @(posedge CLK)
    if ({OPMODE[8], OPMODE[3:0]} != 5'b00101 || OPMODE[6] && OPMODE[6:4] != 5 || ALUMODE != 0 || CARRYINSEL != 0 || CARRYIN || CEA1
        || !(CEAD & CEB2 & CECTRL & CEM & CEP) || RSTA || RSTB || RSTC || RSTD || RSTM || RSTP || RSTCTRL)
      $fatal(1, "a DSP48E2 is asked for what its model does not have");
`endif
endmodule

// A multiplier between its registers: those of A and B, or of the pre-adder, and M.
module DSP48E2_MULTIPLIER (
  input CLK, CEA, input signed [26:0] A, input signed [17:0] B, output reg signed [44:0] M
);
  /*verilator inline_module*/
  reg signed [26:0] a;
  reg signed [17:0] b;

  always @(posedge CLK) begin
    if (CEA) a <= A;
    b <= B;
    M <= a * b;
  end
endmodule
