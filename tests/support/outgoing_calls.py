"""The daemon, noting whom it calls.

    python outgoing_calls.py FILE run ...

Each call of its own, and each name that it looks up, is a line of FILE: the event as Python's audit
hooks name it, the family of the socket, and the address.
"""

import socket
import sys
from pathlib import Path
from typing import Any

CALLS = ("socket.connect", "socket.sendto", "socket.sendmsg")
LOOK_UPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")

if __name__ == "__main__":
    notes = Path(sys.argv.pop(1)).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        """Note an event if it is one of those."""
        if event in CALLS:
            sender, address = arguments
            print(event, socket.AddressFamily(sender.family).name, address, file=notes)
        elif event in LOOK_UPS:
            print(event, *arguments, file=notes)

    sys.addaudithook(note)

    from medamad.cli import main

    sys.exit(main())
