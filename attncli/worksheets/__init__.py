"""Exercises with numbers of one's own: drawn from recipes, proved to tell mistakes apart, printed, handed out and marked."""
