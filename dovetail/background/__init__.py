"""What runs beside the steps for as long as the process does: how it is kept running, and how its state is reported."""
