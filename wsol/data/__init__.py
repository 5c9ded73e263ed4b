"""Room 1, images: data sets, their checks, decoding and augmentation."""
