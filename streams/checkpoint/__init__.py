"""The checkpoint: whose it is, whether it is sound, and where it goes on."""
