"""What disruption would do from now on, wave after wave, if nothing else happened."""
