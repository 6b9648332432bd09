"""Experiments: each reads data, runs the engine, writes a JSON report."""
