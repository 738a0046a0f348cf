"""What a question contributes to the grading of its answer: domains of letters, units and nouns, and the asked form."""
