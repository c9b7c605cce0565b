"""From a job to commands: descriptors, passes over query tiles, the tiles of keys in each."""
