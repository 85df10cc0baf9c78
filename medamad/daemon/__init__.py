"""The daemon: service assembly, process, logs, systemd."""
