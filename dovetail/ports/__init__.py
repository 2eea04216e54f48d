"""What the product needs from outside: protocols of at most five methods each, small enough to fake in ten lines."""
