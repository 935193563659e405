"""`python -m train.gpu_check`: a check of busso on a GPU, in one report."""
