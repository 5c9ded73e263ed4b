"""Drawing: colours, labels, one picture with its boxes, many pictures on a sheet. Knows no room."""
