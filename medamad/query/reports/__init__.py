"""The reports: one module for each kind of statistic."""
