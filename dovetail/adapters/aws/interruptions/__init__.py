"""Warnings from EventBridge through SQS, and EC2's own checks of instances."""
