"""What processes of a deployment say to one another, as types."""
