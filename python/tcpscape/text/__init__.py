"""How anything is shown, whatever it is about: numbers, tables, and the screen of an answer. What answers say of results is in their own modules."""
