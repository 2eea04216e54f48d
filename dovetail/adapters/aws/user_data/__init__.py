"""What a new instance runs at its start, for every image family (AWS-96 to AWS-100)."""
