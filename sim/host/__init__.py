"""The terminal, files, paths and processes of the machine that runs Loomwork."""
