"""Tournaments: every pair of players on the same duplicate deals.

`batches` plays batches of one pair's deals in processes, `schedule` chooses the next batch and stops pairs
that have played enough, `journal` keeps results on disk, and `ratings` and `report` tabulate them.
"""
