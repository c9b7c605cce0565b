"""Reading and writing ranges of bytes through an AXI port."""
