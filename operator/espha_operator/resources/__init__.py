"""Builders: pure functions from a deployment to the Kubernetes objects that it wants."""
