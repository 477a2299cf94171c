"""Marking: one sheet, the mistakes on it by name, and a whole class. Marking computes; it never prints."""
