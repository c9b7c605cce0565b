"""The scratchpad in granules: words that begin at any granule, in one slice of banks a granule."""
