"""PostgreSQL for a Temporal: its database is empty at each start, and only its own password opens it.

It refuses to run as root, so there it runs as the user that Debian's package makes. Its files lie in a folder of their
own below the system's temporary one, which that user can reach, and go when it is stopped for good.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from testbed.plane.unavailable import TestbedUnavailable

USER: Final = "temporal"
_DEBIANS_USER: Final = "postgres"
_SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "400",  # five processes of up to forty each, and whoever looks
    "log_min_messages": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """One server and its files."""

    programs: Path
    folder: Path
    port: int
    password: str

    @classmethod
    def create(cls, programs: Path, port: int, password: str) -> "Postgres":
        """An empty one, not started yet."""
        folder = Path(tempfile.mkdtemp(prefix="dovetail-postgres-"))
        made = cls(programs=programs, folder=folder, port=port, password=password)
        secret = folder / "password"
        secret.write_text(password)
        if (user := _other_user()) is not None:
            for path in (folder, secret):
                shutil.chown(path, user=user)
        made._run(
            "initdb", "--pgdata", str(made.data), "--username", USER, "--auth", "scram-sha-256", "--pwfile", str(secret)
        )
        settings = {**_SETTINGS, "port": str(port), "unix_socket_directories": str(folder)}
        made._append("postgresql.conf", "".join(f"{name} = '{value}'\n" for name, value in settings.items()))
        return made

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        """Returns once it takes connections."""
        log = self.folder / "log"
        done = self._ask("pg_ctl", "--pgdata", str(self.data), "--log", str(log), "--wait", "start")
        if done.returncode != 0:
            said = log.read_text().splitlines() if log.exists() else done.stderr.splitlines()
            raise TestbedUnavailable(f"PostgreSQL does not start: {' | '.join(said[-3:])}")

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> None:
        """`immediate`: as a crash does, so that it recovers at its next start."""
        if self.is_running():
            self._run("pg_ctl", "--pgdata", str(self.data), "--wait", "--mode", mode, "stop")

    def is_running(self) -> bool:
        return self._ask("pg_ctl", "--pgdata", str(self.data), "status").returncode == 0

    def sql(self, statement: str, database: str = "postgres") -> str:
        """What it answers, a line for each row."""
        words = ("--no-psqlrc", "--tuples-only", "--no-align", "--host", str(self.folder), "--port", str(self.port))
        return self._run("psql", *words, "--username", USER, "--dbname", database, "--command", statement).strip()

    def remove(self) -> None:
        """Stop it and take its files away."""
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _append(self, name: str, text: str) -> None:
        with (self.data / name).open("a") as file:
            file.write(text)

    def _run(self, program: str, *words: str) -> str:
        done = self._ask(program, *words)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"ended with {done.returncode}"]
            raise TestbedUnavailable(f"{program} of PostgreSQL: {said[-1]}")
        return done.stdout

    def _ask(self, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
        # To files: what is started in the background would hold a pipe open for as long as it runs.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            command = [*_as_other_user(), str(self.programs / program), *words]
            environment = {**os.environ, "PGPASSWORD": self.password, "LC_ALL": "C.UTF-8"}
            done = subprocess.run(command, stdout=out, stderr=err, cwd="/", env=environment, check=False)
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(command, done.returncode, out.read(), err.read())


def _other_user() -> str | None:
    """Whom it runs as instead of root; None where we are nobody special."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(_DEBIANS_USER).pw_name
    except KeyError:
        raise TestbedUnavailable(f"PostgreSQL does not run as root, and there is no user {_DEBIANS_USER}") from None


def _as_other_user() -> Sequence[str]:
    user = _other_user()
    return () if user is None else ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
