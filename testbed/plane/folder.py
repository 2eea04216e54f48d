"""The files in the folder of one plane.

Every start begins with an empty folder and writes keys, a kubeconfig for each identity, the scheduler's configuration
and a `kubectl` that knows its plane. Only what a plane makes is ever removed.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from testbed.plane.certificates import Authority, service_account_key
from testbed.plane.kubeconfig import write_kubeconfig
from testbed.plane.parts import API_SERVICE, Site, egress_configuration, scheduler_configuration
from testbed.plane.processes import ProcessIdentity
from testbed.plane.state import PlaneState

IDENTITIES: dict[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "kwok": ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}


def prepare(site: Site) -> None:
    """Everything that the parts read at their start."""
    _clear(site.folder)
    (site.folder / "logs").mkdir(parents=True)
    _write_pki(site)
    for user, groups in IDENTITIES.items():
        write_kubeconfig(site.kubeconfig(user), site.server, site.pki, user, groups)
    (site.folder / "scheduler.json").write_text(json.dumps(scheduler_configuration(site), indent=1))
    (site.folder / "egress.json").write_text(json.dumps(egress_configuration(site), indent=1))
    wrapper = site.folder / "kubectl"
    program, kubeconfig = site.binaries.path("kubectl"), site.kubeconfig("admin")
    wrapper.write_text(f'#!/bin/sh\nexec "{program}" --kubeconfig "{kubeconfig}" "$@"\n')
    wrapper.chmod(0o755)


def describe(site: Site, owner: ProcessIdentity | None) -> PlaneState:
    return PlaneState(
        folder=site.folder,
        server=site.server,
        kubeconfig=site.kubeconfig("admin"),
        audit_log=site.audit_log,
        kubectl=site.folder / "kubectl",
        owner=owner,
    )


def _write_pki(site: Site) -> None:
    folder, inside = site.pki, site.settings.led_in_at
    folder.mkdir(mode=0o700)
    authority = Authority.create()
    server = authority.server(*((inside, API_SERVICE) if inside else ()))
    # What the API server shows to kubelets; written where there are none too.
    kubelets = authority.client("kube-apiserver", ("system:masters",))
    for name, pair in (("ca", authority.pair), ("server", server), ("kubelets", kubelets)):
        (folder / f"{name}.crt").write_bytes(pair.certificate)
        (folder / f"{name}.key").write_bytes(pair.key)
    (folder / "service-account.key").write_bytes(service_account_key())


def _clear(folder: Path) -> None:
    """Only what a plane makes: a folder named by mistake must not lose anything else."""
    for name in ("audit.log", "commands.json", "scheduler.json", "kubectl"):
        (folder / name).unlink(missing_ok=True)
    for name in ("etcd", "kubeconfigs", "logs", "pki"):
        shutil.rmtree(folder / name, ignore_errors=True)
