"""The host side: from a workload to the jobs that the engine takes."""
