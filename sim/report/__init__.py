"""Reports of runs: figures with their units, tables, charts, pages."""
