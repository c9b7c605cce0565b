"""Networks on the kernel beside other ways to run them, and beside the float model they were made of."""
