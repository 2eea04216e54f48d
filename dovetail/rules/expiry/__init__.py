"""When nodes leave because of their age."""
