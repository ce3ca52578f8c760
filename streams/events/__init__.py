"""Events: catalogue, values, canonical bytes, sealing and decoding."""
