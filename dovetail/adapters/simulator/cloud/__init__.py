"""The simulated cloud: what it sells, and the instances that it runs."""
