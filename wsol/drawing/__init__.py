"""Drawing: colours, labels, one picture with its boxes, many pictures on a sheet. Imports no room."""
