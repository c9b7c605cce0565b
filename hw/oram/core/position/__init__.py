"""The position map: which label a key has, kept in two tables of buckets in HBM."""
