"""Texts of control-only simulations: words that decide nothing are gone, all else is there."""

import importlib.util

from sim.build.control import without_data

#: A queue of two words from a memory port back to it, and a count of words.
KERNEL = """
module kernel(ap_clk, m_axi_gmem0_RVALID, m_axi_gmem0_RDATA, m_axi_gmem0_WVALID, m_axi_gmem0_WDATA,
    m_axi_gmem0_WSTRB, count);
  input ap_clk;
  input m_axi_gmem0_RVALID;
  input [511:0] m_axi_gmem0_RDATA;
  output m_axi_gmem0_WVALID;
  output [511:0] m_axi_gmem0_WDATA;
  output [63:0] m_axi_gmem0_WSTRB;
  output [7:0] count;
  reg [7:0] count = 0;
  reg m_axi_gmem0_WVALID = 0;
  reg [511:0] queue [1:0];
  reg [511:0] word = 0;
  assign m_axi_gmem0_WDATA = word;
  assign m_axi_gmem0_WSTRB = 64'hffffffffffffffff;
  always @(posedge ap_clk) begin
    if (m_axi_gmem0_RVALID) begin
      queue[count[0]] <= m_axi_gmem0_RDATA;
      count <= count + 1;
    end
    word <= queue[count[0]];
    m_axi_gmem0_WVALID <= m_axi_gmem0_RVALID;
  end
endmodule
"""


def test_data_are_left_out_and_handshakes_stay():
    found = without_data(KERNEL, "kernel", ["gmem0"])
    assert not any(f"gmem0_{data}" in found for data in ("RDATA", "WDATA", "WSTRB"))
    assert "511" not in found
    assert "queue" not in found
    assert "reg [7:0] count" in found
    assert "reg m_axi_gmem0_WVALID" in found


def test_without_such_ports_the_text_is_the_same():
    assert without_data(KERNEL, "kernel", []) == KERNEL


def test_without_yosys_the_text_is_the_same(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert without_data(KERNEL, "kernel", ["gmem0"]) == KERNEL
