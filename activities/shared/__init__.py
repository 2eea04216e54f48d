"""What steps of every kind share. Nothing here is a step."""
