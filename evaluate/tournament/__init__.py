"""Tournaments: every pair of players on the same duplicate deals.

`batches` plays a batch of one pair's deals, `schedule` chooses the next batch and stops pairs that have played enough,
`executors` has the processes that play, `journal` keeps results on disk, and `ratings` and `report` tabulate them.
"""
