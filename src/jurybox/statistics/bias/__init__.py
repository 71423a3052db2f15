"""What moves a judge beside quality: place, length, whose response it is, layout, injected words.

Functions of plain arrays. A sample is what is independent; several votes or repeats of one sample
are a cluster. A figure from too few samples is `None` and says so.
"""
