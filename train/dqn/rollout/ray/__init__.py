"""Ray, and the separate process that speaks it.

The learner's process has `backend`, `executor`, `process` and `messages`, which import no Ray: Ray may end a process
that speaks it at any moment. `supervisor` is the process that it starts and that leaves nothing behind; from it forks
`driver`, which has `connect`, `pool` and `tasks`. `private` keeps other users out. `actors` runs on the nodes.
"""
