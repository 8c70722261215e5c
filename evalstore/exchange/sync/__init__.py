"""Push, pull and clone, as the commands do them."""
