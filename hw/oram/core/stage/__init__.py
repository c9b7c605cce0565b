"""The stage of a touch: its page, its records and its response, at fixed times whatever their content."""
