"""The host side: memory layouts, and sealed commands and responses of the rings."""
