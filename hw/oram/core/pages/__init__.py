"""Pages between the host and the stage: opened, sealed, and forwarded while in flight."""
