"""From numbers to tables in Markdown, beside the paper's."""

from benchmarks.paper.tables._averages import average_table
from benchmarks.paper.tables._compare import compare_tables
from benchmarks.paper.tables._provenance import describe_runs
from benchmarks.paper.tables._times import time_tables

__all__ = ["average_table", "compare_tables", "describe_runs", "time_tables"]
