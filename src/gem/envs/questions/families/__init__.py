"""Generated questions with exact answers, one module per subject: arithmetic, algebra, geometry, deduction.

A family makes questions and answers; the environments that ask them are above. Questions with a picture are in vision.
"""
