"""Room 3, boxes: from class maps to boxes, and the predictions in between."""
