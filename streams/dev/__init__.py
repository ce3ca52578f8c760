"""For developers: benches, the demo, the simulator."""
