"""The parts of `export`: the columns of a result, its rows, and the formats they are written in."""
