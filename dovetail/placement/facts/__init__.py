"""What placement knows before it places any pod: nodes, templates and types as tables, and what a pod asks for."""
