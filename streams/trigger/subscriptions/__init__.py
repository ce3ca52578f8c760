"""Runtime of subscriptions: consumption of their topics, limits, replays."""
