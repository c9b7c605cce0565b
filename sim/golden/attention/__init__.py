"""Golden model of the attention engine, from the number formats of ``docs/attention.md`` alone."""
