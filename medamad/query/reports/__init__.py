"""The reports: a module for each kind of statistic."""
