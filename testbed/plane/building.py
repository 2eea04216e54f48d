"""Builds the control plane, real nodes, Temporal, helm and Karpenter's suites from small Go modules, pinned with sums.

A cold build takes about seven minutes on two cores, so it says how far it is; and when it fails, the one line that
matters is taken out of the compiler's output, the rest being kept in a log.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from testbed.plane.toolchain import Toolchain, find_toolchain
from testbed.plane.unavailable import TestbedUnavailable

SOURCES = Path(__file__).parent.parent / "go"
KUBERNETES_VERSION = "v1.36.3"
PROGRESS_SECONDS = 20  # a person who waits for minutes must see that something goes on

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One binary, and the names it is started by."""

    output: str
    module: str
    package: str
    link_flags: str = "-s -w"
    also: tuple[str, ...] = ()
    # The package's tests, as a program. Not in the cache's keys: programs that were built before it was known stay.
    tests: bool = field(default=False, repr=False)
    tags: str = field(default="", repr=False)


# The server's version is in one package, the one in every user agent in another.
_STAMPS = {
    "gitVersion": KUBERNETES_VERSION,
    "gitMajor": "1",
    "gitMinor": "36",
    "gitTreeState": "clean",
    "gitCommit": "",
}
_KUBERNETES_FLAGS = "-s -w " + " ".join(
    f"-X {package}.{name}={value}"
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    for name, value in _STAMPS.items()
)
TARGETS = (
    Target(
        output="kubernetes",
        module="controlplane",
        package="./kubernetes",
        link_flags=_KUBERNETES_FLAGS,
        also=("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"),
    ),
    Target(output="etcd", module="controlplane", package="./etcd"),
    Target(output="kwok", module="kwok", package="."),
)
# Offline helm renders for the Kubernetes that it was told at its build.
_HELM_FLAGS = "-s -w " + " ".join(
    f"-X helm.sh/helm/v3/pkg/{package}.k8sVersion{part}={value}"
    for package in ("chartutil", "lint/rules")
    for part, value in (("Major", _STAMPS["gitMajor"]), ("Minor", _STAMPS["gitMinor"]))
)
HELM = Target(output="helm", module="helm", package="helm.sh/helm/v3/cmd/helm", link_flags=_HELM_FLAGS)
PEER = Target(
    output="regression.test", module="peer", package="sigs.k8s.io/karpenter/test/suites/regression", tests=True
)

# A real node: what Kubernetes, containerd and CNI are there, names of Services, and what runs in containers.
_CONTAINERD = "github.com/containerd/containerd/v2/cmd/"
_CNI = "github.com/containernetworking/plugins/plugins/"
NODE = (
    Target(output="pause", module="containers", package="./pause"),
    Target(output="web", module="containers", package="./web"),
    *(
        Target(output=package.rpartition("/")[2], module="cni", package=_CNI + package)
        for package in ("main/bridge", "main/loopback", "ipam/host-local", "meta/portmap")
    ),
    *(
        Target(output=name, module="containerd", package=_CONTAINERD + name, tags="no_btrfs,no_zfs,no_devmapper")
        for name in ("containerd", "containerd-shim-runc-v2", "ctr")
    ),
    Target(output="kubelet", module="kubelet", package=".", link_flags=_KUBERNETES_FLAGS, also=("kube-proxy",)),
    Target(output="coredns", module="dns", package="."),
)

# Temporal's four services, and the tool of their schema.
_TEMPORAL = "go.temporal.io/server/cmd/"
TEMPORAL = (
    Target(output="temporal-server", module="temporal", package=f"{_TEMPORAL}server"),
    Target(output="temporal-sql-tool", module="temporal", package=f"{_TEMPORAL}tools/sql"),
)

ACTIONLINT = Target(output="actionlint", module="actionlint", package="github.com/rhysd/actionlint/cmd/actionlint")
WINDOWS = Target(output="windows", module="windows", package=".")


def build_targets(targets: tuple[Target, ...], folder: Path, say: Say) -> None:
    """These programs into this folder; TestbedUnavailable with the reason where one cannot be built."""
    modules = {target.module for target in targets}
    toolchain = find_toolchain(_needed_go(modules), folder.parent / "go-wheel", say)
    for target in targets:
        _build(target, toolchain, folder, say)
        for name in target.also:
            (folder / name).symlink_to(target.output)


def _needed_go(modules: Iterable[str]) -> tuple[int, ...]:
    """The newest `go` line of these modules of ours: they ask for no less than their dependencies do."""
    lines = (re.search(r"^go ([\d.]+)$", (SOURCES / name / "go.mod").read_text(), re.M) for name in modules)
    return max(tuple(int(part) for part in line[1].split(".")) for line in lines if line)


def _build(target: Target, toolchain: Toolchain, folder: Path, say: Say) -> None:
    say(f"control plane: {target.output}: fetching its modules")
    total = _count_packages(target, toolchain)
    # `go test` has another -v; and a failure names the file in the module cache, where it can be read.
    how = ["test", "-c", "-vet=off"] if target.tests else ["build", "-v", "-trimpath"]
    command = [str(toolchain.command), *how, *_tags(target), "-ldflags", target.link_flags]
    command += ["-o", str(folder / target.output), target.package]
    begun = said = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        command,
        cwd=SOURCES / target.module,
        env=toolchain.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as compiler:
        for line in compiler.stderr or ():
            lines.append(line.rstrip())
            if time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                say(f"control plane: {target.output}: {len(lines)} of {total} packages, {said - begun:.0f} s")
    if compiler.returncode != 0:
        raise _failed(target, lines, folder)
    say(f"control plane: {target.output} built in {time.monotonic() - begun:.0f} s")


def _count_packages(target: Target, toolchain: Toolchain) -> int:
    """Also what fetches the modules, so that a machine without the module proxy learns of it before compiling."""
    asked = ["list", "-deps", f"-test={str(target.tests).lower()}", *_tags(target), target.package]
    listed = subprocess.run(
        [str(toolchain.command), *asked],
        cwd=SOURCES / target.module,
        env=toolchain.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        raise _failed(target, listed.stderr.splitlines(), None)
    return len(listed.stdout.splitlines())


def _tags(target: Target) -> list[str]:
    return ["-tags", target.tags] if target.tags else []


def _failed(target: Target, lines: list[str], folder: Path | None) -> TestbedUnavailable:
    """The last line that is not a package's name or a download is what went wrong."""
    meaningful = [line.strip() for line in lines if " " in line.strip() and not line.startswith("go: downloading")]
    reason = meaningful[-1][:300] if meaningful else "the compiler gave no reason"
    if folder is not None:
        log = folder.parent / "last-failed-build.log"
        log.write_text("\n".join(lines) + "\n")
        reason += f" (all of it in {log})"
    return TestbedUnavailable(f"{target.output} cannot be built here: {reason}")
