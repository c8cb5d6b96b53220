"""Which solver takes a problem: names, rules, and what follows one that gives up."""
