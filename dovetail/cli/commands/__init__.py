"""What is typed, command by command: the arguments, and which answer is asked for."""
