"""The images of a user, one folder for each class."""
