"""The kernel of networks: loader, sequencer, transfers and both units."""
