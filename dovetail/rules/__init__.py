"""What holds nodes back: rules of people, and of what has failed before; a folder for each. Pure."""
