"""Maps from a plain classifier: a network that was trained for classes alone, and a method that looks inside.

::

    opening.py     from a name, a weights file or a user's module to an `OpenedClassifier`
    network.py     the classifier's passes: scores, the features of one layer, gradients at it
    layers.py      which layer: by name, or the last one with maps
    features.py    the output of a layer as maps (N, C, h, w), also where it is a list of tokens
    methods/       one file for each method: CAM, Grad-CAM, Score-CAM, ...
    localizer.py   all of it together, with the interface of a trained localizer
    class_table.py which of the classifier's classes stands for which class of a data set
"""
