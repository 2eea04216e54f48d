"""Days, weeks and markets that are played to learn what a policy costs: research, which judges nobody."""
