"""Everything that commands print or draw: tables, progress, pictures, summary lines."""
