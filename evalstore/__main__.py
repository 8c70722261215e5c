"""Where `python -m evalstore` starts.

Python then looks for modules in the working folder first, which may be a workspace with files of
such names: the folder is taken away before anything is imported from it. Only what Python itself
imports to get here, and a folder `evalstore` in the working folder, come before; `evalstore` and
`python -P -m evalstore` are not open to that either.
"""

import os
import sys

if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
    del sys.path[0]

from evalstore.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
