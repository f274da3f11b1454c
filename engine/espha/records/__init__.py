"""What a record looks like: CSV and JSON, in Python and in Catalyst, to events and back."""
