from support.in_process_daemon import stopped_daemons

# pytest finds fixtures by their names here.
__all__ = ("stopped_daemons",)
