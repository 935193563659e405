"""CUDA kernels in place of chains of PyTorch's operations, each with the chain that it stands for."""
