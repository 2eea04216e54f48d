"""What does a model of this package promise? That it treats an object as the API server treats it under our CRDs.

Unknown fields are pruned (never refused, never kept), except below EC2NodeClass `spec.kubelet`, which is open. A null
is an absent field. Defaults are filled in. No value is coerced: "5" is not 5. Attribute names are snake_case, the API's
names are the aliases. `model_validate` would also take snake_case keys from a manifest, so objects are read through
`dovetail.api.validation`, which does not.
"""

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from dovetail.api.schema.descriptions import descriptions
from dovetail.api.schema.rules import AnyRule, refuse_broken, with_validations, without_nulls


class ApiModel(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
    )

    rules: ClassVar[tuple[AnyRule, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _nulls_are_absent(cls, value: Any) -> Any:
        return without_nulls(value)

    @model_validator(mode="after")
    def _obeys_its_rules(self) -> Self:
        refuse_broken(self.rules, self)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        stated = handler.resolve_ref_schema(handler(schema))
        stated.update(with_validations(stated, cls.rules))
        words = descriptions(cls)
        for name, field in cls.model_fields.items():
            if name in words:
                stated["properties"][field.alias or name].setdefault("description", words[name])
        return stated

    def as_object(self) -> dict[str, Any]:
        """The object under its API names, defaults filled in, absent fields left out."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")
