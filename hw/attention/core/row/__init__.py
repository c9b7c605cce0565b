"""The cell of each pair of query rows in one stream of keys and values."""
