"""The gates that execute a program: sequencer, transfer engines, scratchpad, operator ports."""
