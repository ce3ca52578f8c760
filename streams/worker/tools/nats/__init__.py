"""Operations of the nats tool on a NATS server with JetStream."""
