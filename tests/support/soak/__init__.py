"""`make soak`: resumed where it was stopped, and confined to the tests that a change can reach."""
