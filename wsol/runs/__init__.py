"""The ground of every run: its folder, files, lock, checkpoints and processes. Knows no room."""
