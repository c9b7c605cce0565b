"""What the core places for every two query rows, against one stream of keys and values."""
