"""How the operator's commands talk to a running daemon: over a socket in the data directory.

Whoever may open that directory is the operator: it has mode 0700, the socket 0600. Both sides send
frames (a 32-bit length, then MessagePack). A request is answered by any number of `Progress` frames,
then by one `Done` with the result or one `Refused`; the requests of a connection are answered in
order. If a command exits early, the daemon cancels its work.

To add a request, define the request and its result as structs in a module of their subject:

    class Count(Request, frozen=True):
        website: str

    class Counted(Struct, frozen=True):
        views: int

handle it in a coroutine, which raises an `ApiError` if it fails, and add that to the table in
`handlers.py`:

    async def count(request: Count, tell: Tell) -> Counted: ...

    handlers = {Count: count}

and send it from a command: `connect(data_dir).ask(Count("example.com"), Counted)`. Handlers run in
the reactor's thread. Large data travel in several requests of one connection, each smaller than
`MAX_FRAME_BYTES`; since each is answered before the next is read, they do not pile up.
"""
