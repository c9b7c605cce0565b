"""The host side: what lies where in memory, and commands and responses as they lie in the rings."""
