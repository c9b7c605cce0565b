"""From commands to memory and back: DMA, caches, and what cuts and packs words."""
