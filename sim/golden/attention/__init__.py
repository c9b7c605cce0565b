"""Golden model of the attention engine, written from ``docs/attention-specification.md`` alone."""
