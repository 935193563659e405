"""Every pair of players on the same duplicate deals: what is played, by whom, what is kept, and what follows from it.

`settings` says what is wanted, `batches` plays some deals of one pair, `schedule` decides which is next and when a
pair has been played enough, `executors` has who plays them, `journal` keeps what was played, and `ratings` and `report`
make tables of it.
"""
