"""The network engine's demo: an encoder on sentences and open_nsfw on a photograph, with one kernel."""
