"""How finely operators are cut into bands of rows."""
