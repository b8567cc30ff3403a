//! Run directory, statistics, charts and reports.
