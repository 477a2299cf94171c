"""Training the model `gpt` on a text, and writing on with it. Calculates and reports; never prints."""
