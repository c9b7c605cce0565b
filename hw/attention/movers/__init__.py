"""From commands to memory and back: DMA, caches, cutters and packers."""
