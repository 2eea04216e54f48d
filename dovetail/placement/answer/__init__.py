"""What a finished pass comes to: nodes to create, and reasons why pods were refused."""
