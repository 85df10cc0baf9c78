"""Run as a script: a ClickHouse server from the library of `support.clickhouse.servers`.

The library runs `clickhouse local`, whose `SYSTEM START LISTEN` makes it a server. It ends with the
process that started it.
"""

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(library: str, *arguments: str) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    run = ctypes.CDLL(library)
    run.chdb_query_cmdline.restype = ctypes.c_void_p
    run.chdb_query_cmdline.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]
    run.chdb_result_error.restype = ctypes.c_char_p
    run.chdb_result_error.argtypes = [ctypes.c_void_p]
    given = [each.encode() for each in ("clickhouse", *arguments)]
    found = run.chdb_query_cmdline(len(given), (ctypes.c_char_p * len(given))(*given))
    sys.exit(f"{run.chdb_result_error(found)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
