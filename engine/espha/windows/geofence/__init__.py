"""Geofence windows."""
