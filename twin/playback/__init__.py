"""Recordings played through the twins of an estate, and what is drawn and learnt from them."""
