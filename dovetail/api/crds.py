"""What stands in deploy/crds? `python -m dovetail.api.crds FOLDER` writes one CustomResourceDefinition for each kind.

The output is the same on every machine: keys sorted, no dates, no versions of tools.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from dovetail.api.kinds import KINDS, Column, ResourceKind
from dovetail.api.schema.structural_schema import structural_schema

HEADER = "# Written by `make crds` from the models in api/. Change those, not this file.\n"


class _Plain(yaml.SafeDumper):
    """Repeats equal parts instead of pointing at them: a CRD with YAML anchors is hard to read and to compare."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | ({"priority": 1} if column.wide else {})


def _subresources(kind: ResourceKind) -> dict[str, Any]:
    if kind.scale is None:
        return {"status": {}}
    wanted, actual = kind.scale
    return {"status": {}, "scale": {"specReplicasPath": wanted, "statusReplicasPath": actual}}


def _names(kind: ResourceKind) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": kind.kind,
        "listKind": kind.kind + "List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    lists = {"categories": kind.categories, "shortNames": kind.short_names}
    return names | {name: list(entries) for name, entries in lists.items() if entries}


def crd(kind: ResourceKind) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structural_schema(kind.model)},
        "subresources": _subresources(kind),
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name},
        "spec": {"group": kind.group, "names": _names(kind), "scope": scope, "versions": [version]},
    }


def files() -> dict[str, str]:
    """File name and text of every CRD."""
    return {
        f"{kind.group}_{kind.plural}.yaml": HEADER + yaml.dump(crd(kind), Dumper=_Plain, sort_keys=True, width=120)
        for kind in KINDS
    }


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m dovetail.api.crds FOLDER")
    write(Path(sys.argv[1]))
