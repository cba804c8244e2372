"""Listening reviews: which clips are offered, what a record must hold, the layer it becomes, and what it sums up to."""
