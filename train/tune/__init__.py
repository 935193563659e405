"""Hyperparameter search over the settings of `busso train`, by Optuna; each trial is a resumable run."""
