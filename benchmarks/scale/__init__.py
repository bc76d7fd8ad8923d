"""How a fit grows: with rows that do not fit into memory, and with workers."""
