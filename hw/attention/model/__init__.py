"""What a launch takes, computed without tensors: passes, bytes, cycles."""
