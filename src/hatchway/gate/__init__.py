"""May it: rules, limits, and what a person is asked."""
