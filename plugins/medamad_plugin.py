"""Lets `twistd` and `twist` find the daemon under the name `medamad`."""

from twisted.application.service import ServiceMaker

medamad = ServiceMaker(
    "medamad", "medamad.daemon.twistd", "Self-hosted, cookie-free web analytics.", "medamad"
)
