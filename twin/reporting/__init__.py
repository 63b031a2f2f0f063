"""The morning report: what came close, who was called and rightly, what people changed, and what it was worth."""
