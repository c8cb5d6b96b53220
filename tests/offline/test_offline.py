"""Tests run without a network, and so do the processes that they start."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys

import pytest
from joblib import Parallel, delayed

from tests.offline import sitecustomize

FORBIDDEN = "tests run without a network: socket"
PORT = 9  # nothing listens there
CODE = f"import socket; socket.create_connection(('127.0.0.1', {PORT}))"


def connect() -> str:
    try:
        with socket.socket() as plug:
            plug.connect(("127.0.0.1", PORT))
    except Exception as error:  # whatever it is, its sentence comes back from the other process
        return str(error)
    return "connected"


def test_no_test_can_connect() -> None:
    with (
        socket.socket() as plug,
        pytest.raises(RuntimeError, match=re.escape(f"{FORBIDDEN}.connect")),
    ):
        plug.connect(("127.0.0.1", PORT))
    with (
        socket.socket(type=socket.SOCK_DGRAM) as plug,
        pytest.raises(RuntimeError, match=re.escape(f"{FORBIDDEN}.sendto")),
    ):
        plug.sendto(b"hello", ("127.0.0.1", PORT))


def test_no_test_can_look_up_a_name() -> None:
    with pytest.raises(RuntimeError, match=re.escape(f"{FORBIDDEN}.getaddrinfo")):
        socket.getaddrinfo("example.org", 443)


def test_nor_can_a_process_that_a_test_starts() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert FORBIDDEN in done.stderr


@pytest.mark.parametrize(("host", "allowed"), [("127.0.0.1", True), ("192.0.2.1", False)])
def test_processes_that_may_speak_on_this_machine_reach_no_other(host: str, allowed: bool) -> None:
    code = f"import socket; socket.create_connection(({host!r}, {PORT}), timeout=1)"
    environment = {**os.environ, sitecustomize.LOOPBACK: "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (FORBIDDEN in done.stderr) is not allowed
    assert ("Connection refused" in done.stderr) is allowed


def test_nor_can_the_workers_of_joblib() -> None:
    answers = Parallel(n_jobs=2)(delayed(connect)() for _ in range(2))
    assert [answer.startswith(FORBIDDEN) for answer in answers] == [True, True]


def test_processes_on_this_machine_can_speak() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.sendall(b"hello")
        assert right.recv(5) == b"hello"
