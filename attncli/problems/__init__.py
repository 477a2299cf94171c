"""Problems: matrices as text, problem files, the worked examples."""
