"""The engine over ClickHouse: sums that its servers find in `medamad.clickhouse.tables`.

`reader.ClickHouseReader` is what reports ask. Filters and goals are matched with a website's texts
here, as in every engine, and only the texts that match are sent; the servers' sums come back by
text.
"""
