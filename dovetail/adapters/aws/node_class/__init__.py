"""EC2NodeClasses resolved and validated, and whether instances still match them."""
