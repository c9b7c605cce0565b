"""Programs of the sequencer: lowered plans, their memory image, their predicted cycles."""
