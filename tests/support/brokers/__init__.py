"""Real servers, deployments of several, users with few rights, and a proxy that loses replies."""
