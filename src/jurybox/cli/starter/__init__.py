"""What ``jurybox init`` writes: a suite that runs at once, without a key or a network."""
