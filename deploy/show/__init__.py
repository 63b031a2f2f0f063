"""What commands print and draw: tables, progress, pictures and sentences."""
