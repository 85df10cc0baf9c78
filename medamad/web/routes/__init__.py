"""The routes: one module for each section of the interface."""
