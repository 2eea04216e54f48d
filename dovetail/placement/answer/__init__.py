"""What a finished pass says: nodes to create, reasons why pods were refused."""
