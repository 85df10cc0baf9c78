"""The demonstration's sample traffic: plausible visits to invented websites."""
