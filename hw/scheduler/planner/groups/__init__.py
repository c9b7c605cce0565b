"""Which neighbours run as one pipelined group."""
