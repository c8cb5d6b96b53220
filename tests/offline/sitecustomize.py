"""Forbids the network to a Python process; what runs on one machine (AF_UNIX, pipes) stays.

Python imports a module of this name as it starts, wherever its folder is on PYTHONPATH: so the
processes that tests start are held to it, too. Those that are started with `LOOPBACK` set to 1 may
speak to each other by 127.0.0.1, as the workers of a cluster on one machine do.
"""

import os
import socket
import sys
from typing import Any

LOOPBACK = "PROXMARGIN_TESTS_LOOPBACK"
HERE = ("127.0.0.1", b"127.0.0.1")
CONNECTIONS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def forbid(event: str, arguments: tuple[Any, ...]) -> None:
    is_lookup = event in LOOKUPS
    if not is_lookup and (event not in CONNECTIONS or arguments[0].family == socket.AF_UNIX):
        return
    host = arguments[0] if is_lookup else (arguments[1] or [None])[0]
    if host not in HERE or os.environ.get(LOOPBACK) != "1":
        raise RuntimeError(f"tests run without a network: {event} {arguments[1:]}")


sys.addaudithook(forbid)
