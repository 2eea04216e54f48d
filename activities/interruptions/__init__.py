"""Reading the cloud's warnings and answering them."""
