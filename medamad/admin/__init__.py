"""How the operator's commands speak with a running daemon: over a socket in the folder of the data.

Whoever may open that folder is the operator: it has mode 0700, the socket 0600. Both sides send
frames (a length of 32 bits, then MessagePack). A request is answered by any number of
`Progress`, then by one `Done` with its result, or by one `Refused`; the requests of a connection
are answered one after another, in order. A command that ends early takes its work with it: what
the daemon does for it is cancelled.

To add a request, say what is asked and what comes back as structs, in a module of its subject:

    class Count(Request, frozen=True):
        website: str

    class Counted(Struct, frozen=True):
        views: int

answer it by a coroutine, which raises a `ApiError` where it cannot, and add that to the table of
`operator.handlers`:

    async def count(request: Count, tell: Tell) -> Counted: ...

    handlers = {Count: count}

and ask it in a command: `connect(data_dir).ask(Count("example.com"), Counted)`. A handler runs in
the reactor's thread. Rows that are many go in several requests of one connection, each below
`MAX_FRAME_BYTES`; as each is answered before the next is read, none piles up.
"""
