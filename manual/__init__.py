"""The references that are made out of the code: for the site of docs/, and as manual pages.

Nothing here is installed. It needs medamad itself, and for the site what `.[docs]` brings.
"""
