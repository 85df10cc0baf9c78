"""Queries: what a request for statistics means, and its exact result.

Everything here is synchronous Python over numpy columns and runs in a thread of the query pool.
`reports` lists the statistics. A report gets a `reader.Reader`, an engine's view of one website for
one request, and a `request.Query`. The reader selects views, and finds sums of them and of their
visits by the codes of texts or by bucket (`sums`), with the gaps that daily totals leave. The rest
is the same for each engine:

- `filters`: which texts match a filter, and which reach a goal
- `period`, `buckets`: which spans of time are meant
- `names.display_names`, `names.order_of_texts`: the names of rows, and their order
- `rows.page_of_rows`, `rows.make_rows`: the page of rows to return

`embedded` is the engine over the store of one machine, `clickhouse` that over a cluster.
"""
