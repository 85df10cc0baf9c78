"""The headers of a request."""

import pytest
import pytest_twisted
from support.web.client import Connection, encoded
from support.web.daemon_in_memory import Server


@pytest.mark.parametrize("name", ["If-Modified-Since", "if-modified-since", "iF-mODIFIED-sINCE"])
@pytest_twisted.ensureDeferred
async def test_header_names_are_read_in_any_case(server: Server, name: str) -> None:
    request = encoded("GET", "/event/ping", {name: "nonsense"})
    assert (await Connection(server.site).talk(request)).status == 400
