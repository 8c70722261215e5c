"""The tables of the store, and how older stores are brought up to date."""
