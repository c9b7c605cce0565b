"""Gateware that two engines share: streams, AXI, DMA, memories, fixed point, counters, the kernel shell."""
