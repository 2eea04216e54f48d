"""Dovetail's own kinds, and what objects say of them: what people declare, and the state that is shown to them."""
