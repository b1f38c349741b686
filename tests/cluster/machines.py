"""A small Ray cluster of processes on this machine: a head without CPUs, and raylets that can be lost.

With network namespaces (root, `ip`) each raylet has an address of its own and can be cut off; otherwise all share one
address, and a raylet is lost by SIGKILL.
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
from tests.waiting import PATIENCE

NETWORK = "10.213.77"
RAY = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
NOTICED_SOON = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
"""How soon Ray itself takes a silent machine for lost; by default half a minute."""


def namespaces_are_permitted():
    """Whether this process may make network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"pser-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return tried.returncode == 0


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Machines:
    """`with Machines(2) as machines`: a head and two raylets; they and their networks end with the block."""

    def __init__(self, count, folder, *, apart=False, cpus=1):
        self._count, self._folder, self._apart, self._cpus = count, Path(folder), apart, cpus
        self._processes, self._names = [], []
        # Names of its own: the cables of a cluster that has ended go a while after it.
        self._tag = f"pser{secrets.token_hex(3)}"
        self._token = secrets.token_hex(32)  # this cluster's own: nobody else's is used, or lets anybody in

    def __enter__(self):
        try:
            if self._apart:
                self._lay_network()
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._port = probe.getsockname()[1]
            head = ["--head", f"--port={self._port}", "--num-cpus=0", "--include-dashboard=false"]
            self._start(0, head)
            self.address = f"{self.ip(0)}:{self._port}"
            self._await_start(0)
            for number in range(1, self._count + 1):
                self._start(number, [f"--address={self.address}", f"--num-cpus={self._cpus}"])
                self._await_start(number)  # two at once would choose the same socket of the folder they share
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        family = [each for process in self._processes for each in (process, *_children(process))]
        for process in reversed(self._processes):  # the head last
            _signal(process, signal.SIGTERM)
        _, left = psutil.wait_procs(family, timeout=10)
        for process in left:
            _signal(process, signal.SIGKILL)
        psutil.wait_procs(left, timeout=10)
        for name in self._names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        if self._apart:
            subprocess.run(["ip", "link", "delete", f"{self._tag}b"], check=False, capture_output=True)

    def ip(self, number):
        """The address of a machine."""
        return f"{NETWORK}.{number + 1}" if self._apart else "127.0.0.1"

    def inside(self, number, command):
        """The command as run on a machine."""
        return ["ip", "netns", "exec", self._names[number], *command] if self._apart else command

    def environment(self):
        """Of every process of the cluster, and of those that join it."""
        own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self._token, "RAY_USAGE_STATS_ENABLED": "0"}
        return {**os.environ, **NOTICED_SOON, **own, "OMP_NUM_THREADS": "1"}

    def lose(self, number):
        """Cut a machine off the network; without networks of their own, kill its raylet."""
        if self._apart:
            _ip("link", "set", self._cable(number), "down")
            return
        for child in _children(self._processes[number]):
            if child.name() == "raylet":
                _signal(child, signal.SIGKILL)

    def number_of(self, pid):
        """The machine that a process runs on."""
        return next(n for n in range(len(self._processes)) if self.has(n, pid))

    def has(self, number, pid):
        """Whether a process runs on this machine."""
        return self._processes[number].pid in {process.pid for process in psutil.Process(pid).parents()}

    def _start(self, number, words):
        log = open(self._folder / f"machine-{number}.log", "wb")  # noqa: SIM115
        where = [f"--node-ip-address={self.ip(number)}", f"--object-store-memory={80 << 20}"]
        with log:
            command = self.inside(number, [*RAY, *where, *words])
            process = psutil.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment()
            )
        self._processes.append(process)

    def _await_start(self, number):
        deadline = time.monotonic() + PATIENCE
        log = self._folder / f"machine-{number}.log"
        while "Ray runtime started" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            assert self._processes[number].poll() is None, log.read_text()
            time.sleep(0.05)

    def _lay_network(self):
        """A bridge, and a cable from it into each machine's namespace."""
        bridge = f"{self._tag}b"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("link", "set", bridge, "up")
        for number in range(self._count + 1):
            name, inner = f"{self._tag}-{number}", f"{self._tag}i{number}"
            _ip("netns", "add", name)
            self._names.append(name)
            _ip("link", "add", self._cable(number), "type", "veth", "peer", "name", inner)
            _ip("link", "set", self._cable(number), "master", bridge, "up")
            _ip("link", "set", inner, "netns", name)
            _ip("-n", name, "address", "add", f"{self.ip(number)}/24", "dev", inner)
            _ip("-n", name, "link", "set", inner, "up")
            _ip("-n", name, "link", "set", "lo", "up")

    def _cable(self, number):
        return f"{self._tag}c{number}"


def _children(process):
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _signal(process, number):
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
