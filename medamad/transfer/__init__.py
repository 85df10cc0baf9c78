"""Transfer: export of a website's data, and import from our own files and other programs.

`tables` says which columns there are, `exporting` reads them out of a website step by step, and
one module for each format writes and reads files of them.
"""
