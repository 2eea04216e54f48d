"""`dovetail plan -f`: what NodePools and NodeClasses that are not applied yet would bring about."""
