"""How does a model become the structural OpenAPI schema of a CRD?

It takes pydantic's JSON schema and turns it into the API server's dialect: references written out, null alternatives
gone (an optional field is simply not required), titles gone. Any keyword it does not know is an error, so that a bound
can never be lost on the way without anybody noticing.
"""

from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

KEPT = frozenset(
    (
        "default",
        "description",
        "enum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "pattern",
        "type",
    )
)
# What pydantic calls a bound when a validator stands between the bound and the plain type.
RENAMED = {"ge": "minimum", "le": "maximum"}
RENAMED_FOR_MAPS = {"maxLength": "maxProperties"}
DROPPED = frozenset(("title", "required", "properties", "items", "additionalProperties", "anyOf", "const"))


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema for `spec.versions[].schema.openAPIV3Schema`."""
    source = model.model_json_schema(by_alias=True, mode="validation")
    schema = _Translation(source.pop("$defs", {})).of(source)
    # The API server itself checks these two against the path of the request.
    schema["properties"]["apiVersion"] = {"type": "string", "description": "The version of the kind."}
    schema["properties"]["kind"] = {"type": "string", "description": "The kind of the object."}
    schema.pop("required")
    if "spec" in source["required"]:
        schema["required"] = ["spec"]
    return schema


class _Translation:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    def of(self, source: Schema) -> Schema:
        source = self._without_null(self._written_out(source))
        if source.get("x-kubernetes-int-or-string"):
            return {key: value for key, value in source.items() if key != "title"}
        result = self._keywords(source)
        if "const" in source:
            result.update({"enum": [source["const"]], "type": "string"})
        if "properties" in source:
            result.update(self._object(source))
        if isinstance(source.get("items"), dict):
            result["items"] = self.of(source["items"])
        if isinstance(source.get("additionalProperties"), dict):
            result["additionalProperties"] = self.of(source["additionalProperties"])
        return result

    def _written_out(self, source: Schema) -> Schema:
        """The definition behind a reference; what stands beside the reference is added or wins."""
        if "$ref" not in source:
            return source
        beside = {key: value for key, value in source.items() if key != "$ref"}
        named = self._definitions[source["$ref"].removeprefix("#/$defs/")]
        rules = [*named.get("x-kubernetes-validations", []), *beside.get("x-kubernetes-validations", [])]
        merged = {**named, **beside}
        return {**merged, "x-kubernetes-validations": rules} if rules else merged

    def _without_null(self, source: Schema) -> Schema:
        alternatives = source.get("anyOf")
        if not alternatives or source.get("x-kubernetes-int-or-string"):
            return source
        (real,) = [alternative for alternative in alternatives if alternative != {"type": "null"}]
        beside = {key: value for key, value in source.items() if key not in ("anyOf", "default")}
        return {**self._written_out(real), **beside}

    def _keywords(self, source: Schema) -> Schema:
        result: Schema = {}
        renamed = RENAMED | (RENAMED_FOR_MAPS if source.get("type") == "object" else {})
        for key, value in source.items():
            name = renamed.get(key, key)
            if name in KEPT or name.startswith("x-kubernetes-"):
                result[name] = value
            elif name not in DROPPED:
                raise ValueError(f"{key}={value!r} has no place in a structural schema")
        return result

    def _object(self, source: Schema) -> Schema:
        properties = {name: self.of(field) for name, field in source["properties"].items()}
        required = sorted(source.get("required", ()))
        return {"type": "object", "properties": properties} | ({"required": required} if required else {})
