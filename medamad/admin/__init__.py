"""Requests of the operator's commands to a running daemon, over a socket in the data directory.

The directory has mode 0700 and the socket 0600, so that only the operator can open them. Both sides
send frames (a 32-bit length, then MessagePack). The response to a request is any number of
`Progress` frames, then one `Done` with the result or one `Refused`. The requests of a connection
are processed in order. If a command exits early, the daemon cancels its work.

To add a request, define the request and its result as structs in the module of their subject:

    class Count(Request, frozen=True):
        website: str

    class Counted(Struct, frozen=True):
        views: int

write a coroutine that handles it and raises an `ApiError` if it fails; add that to the table in
`handlers.py`:

    async def count(request: Count, report: ReportProgress) -> Counted: ...

    handlers = {Count: count}

and send it from a command: `connect(data_dir).request(Count("example.com"), Counted)`. Handlers
run in the reactor's thread. Large data is sent in several requests on one connection, each
smaller than `MAX_FRAME_BYTES`. Each gets its response before the next is
read, so they do not pile up.
"""
