"""Lines of tables in HBM: many short reads and writes over many ports."""
