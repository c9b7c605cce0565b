"""What computes behind an operator port."""
