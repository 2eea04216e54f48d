"""What a class's selectors select in EC2 and IAM: images, subnets, security groups, profiles, reservations."""
