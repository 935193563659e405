"""Ray, and the process of its own that speaks it.

The learner's process has `rollouts`, `process` and `messages`, which import no Ray: Ray may end a process that speaks
it at any moment. `keeper` is the process that it starts and that leaves nothing behind; from it forks `broker`, which
has `pool`, `connect` and `watch`. `private` keeps other users out. `actors` is what runs on the nodes, `gauges` what a
dashboard sees of it. `units` is for other work than training, in the same way; on the broker's side it is `unit_pool`.
"""
