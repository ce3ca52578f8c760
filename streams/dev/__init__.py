"""Developer tools: benchmarks, demo, simulator."""
