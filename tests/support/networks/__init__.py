"""Where the shipped networks come from: what was written down from papers, and the command for all."""
