"""Whether the daemon can do its work: store hits."""

from medamad.web.site import Site


def lacks(site: Site) -> list[str]:
    """Say each thing for which no hits are taken at the moment."""
    found = ["the daemon is stopping"] if site.is_leaving else []
    lack = site.backend.store.lack()
    return [*found, lack] if lack else found
