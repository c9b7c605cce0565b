"""Orders that are proven best, by search over down-sets."""
