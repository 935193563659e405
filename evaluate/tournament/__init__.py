"""Every pair of players on the same duplicate deals: what is played, by whom, what is kept, and what follows from it.

`settings` says what is wanted, `units` plays a batch of deals of one pair, `schedule` decides which is next and when a
pair has been played enough, `crews` has who plays them, `journal` keeps what was played, `ratings` and `report` make
tables of it.
"""
