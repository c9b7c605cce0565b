"""The core: commands and streams in, streams out; it knows no memory."""
