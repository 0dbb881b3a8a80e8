"""The paper itself: its claims, its numbers and its code, put to the test."""
