"""Commands that stop, ask for or allow something, each by a word on the object that it is about."""
