"""Dictionary encoding: each text of a website is stored once and known by a code."""
