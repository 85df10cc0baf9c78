"""Transfer: export a website's data, and import our own files and those of other programs.

`rows` has what a reader yields, `tables` the columns of an exported table, and `registry` every
format and import source by name. An import runs in two passes: `import_survey` checks the files,
then `import_rows` or `import_days` gathers what the website does not have yet.
"""
