"""The twins of stores: structures, page sets, queue files, coupling facilities and uniform clusters."""
