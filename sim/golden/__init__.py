"""Golden models in plain NumPy, one an engine, written from the number formats and not from the gateware."""
