"""The expression languages of models: EEL, and the function language of functional windows."""
