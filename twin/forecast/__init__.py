"""The forecast: present flows, the model of how a store fills, possible futures, and when to alert about them."""
