"""Who wrote a field, by metadata.managedFields."""

from dovetail.model.values.json import ReadOnlyJson


def manager_of_annotation(raw: ReadOnlyJson, annotation: str) -> str:
    """The program that wrote the annotation last; empty where that is not recorded."""
    owners = [
        (str(entry.get("time") or ""), str(entry.get("manager") or ""))
        for entry in raw["metadata"].get("managedFields") or ()
        if f"f:{annotation}" in _annotations(entry)
    ]
    return max(owners, default=("", ""))[1]


def _annotations(entry: ReadOnlyJson) -> ReadOnlyJson:
    metadata = (entry.get("fieldsV1") or {}).get("f:metadata") or {}
    return metadata.get("f:annotations") or {}
