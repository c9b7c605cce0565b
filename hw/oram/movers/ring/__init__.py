"""Where commands come from and responses go to."""
