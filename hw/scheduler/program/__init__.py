"""What the sequencer executes: a plan lowered to words, and how long it takes."""
