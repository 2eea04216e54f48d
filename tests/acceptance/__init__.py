"""Is what judges the product right itself?"""
