"""The position map: the label of each key, in two tables of buckets in HBM."""
