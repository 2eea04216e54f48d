"""Every question that commands and the workers' API answer: one function each, from whatever there is to look at."""
