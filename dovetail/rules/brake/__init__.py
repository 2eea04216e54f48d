"""What a NodePool remembers about what has failed, and what that holds back."""
