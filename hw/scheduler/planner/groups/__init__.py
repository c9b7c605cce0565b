"""Selection of neighbours that run as one pipelined group."""
