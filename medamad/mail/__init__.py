"""Reports by mail: what they say, in which language, and how they are written and sent."""
