"""`python -m tests.pretended_gpu MODULE ARGUMENT...`: a command on the pretended GPU."""

import runpy
import sys

from tests.pretended_gpu import pretend

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    with pretend():
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
