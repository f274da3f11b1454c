"""A local Kubernetes cluster, also where no image registry answers; standard library only.

It knows nothing of espha but its name. See README.md in this folder.
"""
