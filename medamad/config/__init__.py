"""The configuration: schema, values, lists, and what a reload changes."""
