"""Workloads in the files of other tools: SCALE-Sim, ZigZag, Stream and AccelForge."""
