"""DMA: byte ranges read and written through an AXI port."""
