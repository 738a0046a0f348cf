"""Questions about drawn pictures: figures and charts, and the canvas that draws them.

Rows of a data set with images are asked by math_visual_env above.
"""
