"""The plays of the drill: every way of swapping, there and back again, and begun by the new version.

Where the previous version comes back, or both serve for a while, this one keeps the way back (decision record 97).
"""

from tests.upgrade.play import KEPT, NEW, OLD, Play

# In every run; the others in the soak.
FEW = (Play(way="rolling", legs=(OLD, KEPT, OLD)),)
MANY = (
    Play(way="all at once", legs=(OLD, NEW)),
    Play(way="all at once", legs=(OLD, KEPT, OLD)),
    Play(way="all at once", legs=(KEPT, OLD)),
    Play(way="killed", legs=(OLD, NEW)),
    Play(way="killed", legs=(OLD, KEPT, OLD)),
    Play(way="killed", legs=(KEPT, OLD)),
    Play(way="killed in the middle", legs=(OLD, KEPT, OLD)),
    Play(way="killed in the middle", legs=(KEPT, OLD)),
    Play(way="rolling", legs=(OLD, KEPT, NEW)),
    Play(way="rolling", legs=(KEPT, OLD)),
    Play(way="ramped", legs=("A", "B", "A")),
    Play(way="versioned", legs=("A", "B")),
    Play(way="versioned", legs=("A", "B", "A")),
    Play(way="versioned", legs=(OLD, "B")),
)
PLAYS = {one.name: one for one in (*FEW, *MANY)}
