"""An embedded model behind an address of this machine, as OpenAI's API has it."""

import importlib

from jurybox.errors import InputError

try:
    importlib.import_module("aiohttp")
except ImportError:
    _mend = "install it with: pip install 'jurybox[local]'"
    raise InputError("serving a model needs aiohttp", _mend) from None
