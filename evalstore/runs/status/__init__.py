"""What a run would ask or judge."""
