"""The tables in HBM as the parts of the map see them: buckets of the position map, and records."""
