"""``python -m jurybox`` is the same as the command ``jurybox``."""

from jurybox.cli import main

if __name__ == "__main__":
    main()
