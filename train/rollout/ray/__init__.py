"""Ray rollouts, and the separate process that uses Ray.

`backend` and `messages` run in the learner's process and do not import Ray, which may kill a process
attached to it at any moment. The learner starts `supervisor`, which cleans up after itself and forks `driver`, which
uses `connect`. `private` keeps other users out. `actors` runs on the nodes.
"""
