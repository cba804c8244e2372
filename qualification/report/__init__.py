"""The report in three forms: a page to look at, a summary for a job page, and results for a test dashboard."""
