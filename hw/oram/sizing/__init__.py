"""Failure probabilities of lists, overflow entries and buckets, for the choice of a configuration."""
