"""What comes from other programs and goes to them."""
