"""The launch templates that exist: a store by name and id, one version each.

Karpenter's templates are named by their content and never changed (AWS-84), so versions beyond the first do not occur.
moto's own are not used: it does not page, mistakes codes on delete, and ignores most of the data at launch (MOT-10).
"""

import re
import time
from dataclasses import dataclass

from testbed.cloud.http.errors import AwsError
from testbed.cloud.json_object import Json

_ID = re.compile(r"lt-([0-9a-f]{8}|[0-9a-f]{17})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A launch template and what it says."""

    id: str
    name: str
    data: Json
    tags: dict[str, str]
    created_at: float


class Templates:
    """All launch templates of one server; call under the cloud's lock."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything; ids count from 1 again."""
        self._by_name: dict[str, Template] = {}
        self._made = 0

    def all(self) -> list[Template]:
        """In order of creation."""
        return list(self._by_name.values())

    def create(self, name: str, data: Json, tags: dict[str, str]) -> Template:
        """A new template; a name exists once."""
        if name in self._by_name:
            raise AwsError(
                "InvalidLaunchTemplateName.AlreadyExistsException", f"Launch template name already in use: {name}"
            )
        self._made += 1
        made = Template(id=f"lt-{self._made:017x}", name=name, data=data, tags=tags, created_at=time.time())
        self._by_name[name] = made
        return made

    def find(self, name: str | None, template_id: str | None) -> Template:
        """By name or by id, with AWS's own code for each."""
        if template_id:
            for each in self._by_name.values():
                if each.id == template_id:
                    return each
            text = f"The launch template ID '{template_id}' does not exist"
            if not _ID.fullmatch(template_id):
                raise AwsError("InvalidLaunchTemplateId.Malformed", f'Invalid id: "{template_id}"')
            raise AwsError("InvalidLaunchTemplateId.NotFound", text)
        if name in self._by_name:
            return self._by_name[name]
        raise AwsError(
            "InvalidLaunchTemplateName.NotFoundException",
            f"At least one of the launch templates specified in the request does not exist: {name}",
        )

    def delete(self, template: Template) -> None:
        """Forget one."""
        del self._by_name[template.name]
