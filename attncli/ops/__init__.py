"""The primitives, by subject, an operation beside its transpose.

An op knows its value, its formula, the arithmetic behind one of its cells, which axes its operands
share, and its backward rule, which is written with ops again.
"""
