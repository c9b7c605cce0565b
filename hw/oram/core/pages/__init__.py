"""Conversion of pages between the host's beats and the ciphers' beats of 16 bytes a lane."""
