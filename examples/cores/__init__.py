"""One core of Loomwork in somebody's own design, in Amaranth and in Verilog (``docs/use-a-core.md``)."""
