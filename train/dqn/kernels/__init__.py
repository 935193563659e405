"""CUDA kernels that replace chains of PyTorch operations, each beside the chain that it replaces."""
