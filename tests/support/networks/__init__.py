"""Sources of the shipped networks: those transcribed from papers, and the command for all."""
