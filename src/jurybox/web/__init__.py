"""The HTTP servers of jurybox: an embedded model, and the pages of stored runs."""
