"""The commands that explain and change nothing: explain, plan, snapshot."""
