"""Where `python -m evalstore` starts."""

import sys

from evalstore.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
