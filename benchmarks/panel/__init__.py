"""Accelerated tours on a panel of problems, beside settings by hand and anchors on a tree."""
