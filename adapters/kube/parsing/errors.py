"""What a parser raises for an object that it cannot read.

Asked by the cache, which leaves such an object out, and by `doctor`, which tells a person which field of which object
is wrong. The trap avoided: one unreadable object that stops the whole watch.
"""


class UnreadableObject(ValueError):  # noqa: N818  a state of the object, said as such
    """An object whose JSON does not say what its kind must say."""

    def __init__(self, kind: str, name: str, field: str, message: str) -> None:
        super().__init__(f"{kind} {name}: {field}: {message}")
        self.kind = kind
        self.name = name
        self.field = field
        self.message = message
