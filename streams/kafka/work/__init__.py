"""What a worker is told: the work item and the topic it travels on."""
