"""What a calculation is: the graph, its gradients, the arithmetic of a cell."""
