"""The attention core: streams and commands in, a stream out; it knows no memory."""
