"""The environment variables of the cloud kwok, by Karpenter's names."""

from pydantic import BaseModel, ConfigDict, Field


class KwokEnvironment(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="forbid")

    instance_types_file: str = Field("", alias="INSTANCE_TYPES_FILE_PATH")
    """a JSON file with the instance types that are sold, in the format of Karpenter's kwok provider; without one its
    144 generated types"""
