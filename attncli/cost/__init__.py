"""What an attention costs: parameters, cache and multiply-adds, counted from its sizes alone.

Every count is a product of named sizes (`count.py`), so that it can be shown as a formula, with the numbers put
in, and as a number.
"""
