"""Sample traffic: plausible visits to invented websites. Imports model only."""
