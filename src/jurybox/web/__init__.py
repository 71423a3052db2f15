"""What jurybox serves over HTTP, on this machine only."""

import importlib

from jurybox.errors import InputError

try:
    importlib.import_module("aiohttp")
except ImportError:
    _mend = "install it with: pip install 'jurybox[local]'"
    raise InputError("serving a model needs aiohttp", _mend) from None
