"""Pages between the host's beats and the ciphers, which take as many bytes a cycle as there are lanes."""
