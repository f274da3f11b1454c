"""Observe, plan, apply, report: one step of a deployment's reconciliation."""
