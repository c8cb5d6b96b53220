"""Permutation tests: would labels drawn by chance be separated as well as the given ones?"""

from proxmargin.models.permutations.permutation_test import PermutationTest, permutation_test

__all__ = ["PermutationTest", "permutation_test"]
