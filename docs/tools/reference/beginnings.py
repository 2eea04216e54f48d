"""The page of what keeps a node from beginning to leave: every cause is played under every rule."""

from docs.tools.reference.tables import table
from worlds.beginnings import CAUSES, RULES

_WORDS = {True: "–", False: "holds"}


def beginnings_page() -> str:
    """The whole page."""
    rows = [(rule, *(_WORDS[play(change)] for play in CAUSES.values())) for rule, change in RULES.items()]
    return f"""# What keeps a node from leaving

Each column is a cause for which nodes leave, each row a rule in the order in which it is asked; "holds" means that no
node begins to leave for that cause while the rule says so. Every cell is the answer of the functions that decide, on a
small cluster in which one node would leave now.

{table(("rule", *CAUSES), rows)}

- Every rule can only say "not now"; where several hold, `dovetail explain node` and the Event name the first.
- Interruptions, the repair of before 1.15 and a person's `kubectl delete` wait for none of them.
- "Empty" has no pods that could hold it. What has drifted goes on although its pods hold it where its claim has a
  `terminationGracePeriod`.
- "Requested" is not held by the health of nodes, nor by replacements that failed: a person looks at them.
- "Requested, --now" passes by windows and budgets, because a person waits for it, and by no pause: a person has said
  that too.
- "Requested" counts for a rate and does not wait for it.
- "Expired, deleted" is Karpenter's expiry: nothing but a pause of `expiry` holds it. With `dovetail.sh/replace-first`
  it is a disruption as drift is.
- What has begun goes on when a window closes.
"""
