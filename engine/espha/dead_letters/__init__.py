"""The dead letters of a deployment: to look at, and to give to the model once more."""
