"""Two runs on the same samples: whether they differ, by how much, and how sure that is.

Samples differ far more from each other than two runs do on one sample, so everything here works
on the differences within samples. A difference is always B's figure minus A's.
"""
