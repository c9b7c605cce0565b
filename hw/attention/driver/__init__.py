"""The host side: from a workload and tensors to the jobs and the memory of a launch."""
