"""Other systems that are sent what a run has stored; no other room knows them."""
