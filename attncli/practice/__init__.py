"""Practice: exercises that are asked line by line, marked at once, remembered, and chosen by what went wrong before."""
