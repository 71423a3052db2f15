"""A judge's figure on many samples, corrected by people's labels on a few of them."""
