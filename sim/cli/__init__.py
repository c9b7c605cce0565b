"""The ``loomwork`` command."""
