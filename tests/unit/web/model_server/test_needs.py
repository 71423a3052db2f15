"""What serving needs beyond the base install."""

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["aiohttp"] = None
from jurybox.errors import InputError
try:
    import jurybox.web.model_server.serving
except InputError as error:
    print(error)
"""


def test_without_aiohttp_it_is_said_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "serving a model needs aiohttp; install it with: pip install 'jurybox[local]'\n"
    )
