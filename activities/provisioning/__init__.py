"""Planning nodes for pending pods, and creating their claims."""
