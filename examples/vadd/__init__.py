"""An engine from gates to report: the sum of two vectors; see `docs/add-an-engine.md`."""
