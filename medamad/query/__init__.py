"""Queries: what a request for statistics means, and its exact result over a snapshot.

Everything here is synchronous Python over numpy columns and runs in a thread of the query pool.
`reports` lists the statistics, and composes each from a few primitives. A primitive takes a
snapshot or a selection of its views, and returns arrays with the gaps that rollups leave:

- `selection.select`: the views that match the filters and the period of a query
- `aggregate.tally`: sums of the selected views by the codes of a dimension
- `series.total_of`, `series.series_of`: sums and median durations, in all or by bucket
- `aggregate.quartiles_by_path`: the quartiles of durations by page
- `properties.count_properties`: events by property
- `rollups.selected_rollups`: what rollups know of the selected views
- `rollup_visits.with_rollups`, `rollup_visits.visits_by_code`, `rollup_visits.visits_by_end`: what
  they know of the selected visits
- `visit_groups.visits_in_groups`: the visits that have a selected view, part by part
- `kept_sums.sum_visits`: the sums of these visits, of the kinds that `visit_sums` has
- `returning.returning_columns`: new and returning visitors, and those of calendar weeks and months

What these leave is done by functions of texts, visits and columns:

- `goals.goal_mask`: the codes that reach a goal
- `goals.GoalSearch`, `goals.count_steps`: the visits that reached each goal, and their numbers by
  step of a funnel
- `names.display_names`, `names.order_of_texts`: the names of rows, and their order
- `rows.page_of_rows`, `rows.make_rows`: the page of rows to return
"""
