"""The processors that the image is built for, each as Debian, Python's wheels, container runtimes and ELF name it."""

import platform
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One of them."""

    name: str  # Debian's and the container runtimes'
    machine: str  # the kernel's and Python's
    elf: int  # the field e_machine of a program's header

    @property
    def libraries(self) -> str:
        """The folder below usr/lib with what is built for it."""
        return f"{self.machine}-linux-gnu"

    @property
    def wheels(self) -> tuple[str, ...]:
        """The platforms of wheels that run on the base's C library."""
        newest = [f"manylinux_2_{minor}_{self.machine}" for minor in range(36, 16, -1)]
        return *newest, f"manylinux2014_{self.machine}"


ARCHITECTURES: Final = {
    "amd64": Architecture(name="amd64", machine="x86_64", elf=62),
    "arm64": Architecture(name="arm64", machine="aarch64", elf=183),
}


def of_this_machine() -> str:
    """The name of the one that builds; amd64 where it is none of them."""
    return next((each.name for each in ARCHITECTURES.values() if each.machine == platform.machine()), "amd64")
