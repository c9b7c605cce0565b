"""What the core places for every two query rows behind all streams: from final sums to results."""
