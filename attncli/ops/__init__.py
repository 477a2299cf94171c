"""The primitives, by subject, an operation beside its transpose.

An op knows its value, its formula, which axes its operands share, and its backward rule, which is written with ops
again. What it calculates is written once: on terms in the place of numbers (`attncli.core.terms`) it is the arithmetic
behind each of its cells.
"""
