"""A search of hyperparameters over the settings of `busso train`, by Optuna; each trial is a run that resumes."""
