"""The local cluster, the images and what else a checkout needs; standard library only."""
