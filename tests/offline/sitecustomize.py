"""Forbids the network to a Python process; what runs on one machine (AF_UNIX, pipes) stays.

Python imports a module of this name as it starts, wherever its folder is on PYTHONPATH: so the
processes that tests start are held to it, too.
"""

import socket
import sys
from typing import Any

CONNECTIONS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
LOOKUPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}


def forbid(event: str, arguments: tuple[Any, ...]) -> None:
    if event in LOOKUPS or (event in CONNECTIONS and arguments[0].family != socket.AF_UNIX):
        raise RuntimeError(f"tests run without a network: {event} {arguments[1:]}")


sys.addaudithook(forbid)
