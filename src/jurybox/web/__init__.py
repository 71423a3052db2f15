"""What jurybox serves over HTTP: an embedded model, and the pages of stored runs."""
