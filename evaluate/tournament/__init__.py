"""Every pair of players on the same duplicate deals.

`settings` has the wanted pairs, `batches` plays some deals of one pair, and `schedule` decides which batch is next and
when a pair has played enough. `executors` has the processes that play, `journal` keeps the results, and `ratings` and
`report` make tables of them.
"""
