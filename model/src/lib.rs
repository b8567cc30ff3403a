//! The vocabulary of a load test: scenario, plan, behavior, session, stamp, sample, interval, ledger, threshold.
