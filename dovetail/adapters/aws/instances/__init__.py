"""The instances that there are: how EC2 describes them, and the list of them."""
