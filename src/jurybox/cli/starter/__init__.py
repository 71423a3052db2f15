"""The files that ``jurybox init`` writes: a suite that needs no key or network."""
