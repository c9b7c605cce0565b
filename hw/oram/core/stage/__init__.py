"""The turn of an operation: its page, its records and its response, at a fixed time whatever they hold."""
