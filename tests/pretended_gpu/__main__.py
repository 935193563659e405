"""`python -m tests.pretended_gpu MODULE ARGUMENT...`: a command on the pretended GPU, whose speed means nothing."""

import runpy
import sys
from unittest import mock

from tests.pretended_gpu import pretend
from train.doctor import measure, together

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    with (
        pretend(),
        mock.patch.object(measure.measure, "__defaults__", (0.1,)),
        mock.patch.object(together.compare_kinds, "__defaults__", (0.5,)),
    ):
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
