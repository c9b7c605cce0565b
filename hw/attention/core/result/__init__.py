"""The cell behind all streams for each pair of query rows: from final sums to results."""
