"""The http tool: requests, bodies, authentication, redirects."""
