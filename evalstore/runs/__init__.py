"""What acts: asks models, judges answers and records both."""
