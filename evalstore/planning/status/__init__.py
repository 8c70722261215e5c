"""What a workspace has and misses."""
