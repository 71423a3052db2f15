"""What jurybox serves over HTTP, on this machine only."""
