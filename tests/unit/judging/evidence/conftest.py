"""A model that answers as it is told, where tests can import it."""

import sys
from pathlib import Path

# Tests are collected by path, so a module beside them is found only if its folder is looked into.
sys.path.append(str(Path(__file__).parent))
