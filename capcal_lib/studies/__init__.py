"""Compute for all cases what a page shows for one case by hand. Each page has one module."""
