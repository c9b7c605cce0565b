"""What came of a run: figures with their units, tables, charts, pages."""
