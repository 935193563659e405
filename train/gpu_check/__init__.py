"""`python -m train.gpu_check`: what there is to know of busso on a GPU, in one report."""
