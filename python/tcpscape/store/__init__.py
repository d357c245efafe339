"""The result store: trials named by their content address, kept as they end, so that an interrupted campaign continues."""
