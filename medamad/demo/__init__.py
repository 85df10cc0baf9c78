"""Sample traffic: plausible visits to invented websites."""
