"""The tables in HBM: buckets of the position map, and records."""
