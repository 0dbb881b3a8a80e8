"""What each page computes for all cases, after it has shown one by hand: a module a page."""
