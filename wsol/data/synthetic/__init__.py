"""The painter of synthetic birds, from the brush up: one import direction, top to bottom.

brush      curves, layers of paint, soft light
anatomy    the form of a bird: proportions, pose, outlines
families   the invented families: form, plumage, habits
species    the small marks that tell their species apart
birds      one bird, painted
flora      what grows and lies around it
scenes     the place, painted
"""
