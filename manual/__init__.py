"""The references generated from the code, for the site of docs/ and as manual pages.

Nothing here is installed. It needs medamad itself, and `.[docs]` for the site.
"""
