"""A search of hyperparameters over the settings of `python -m train`, by Optuna; each trial is a run that resumes."""
