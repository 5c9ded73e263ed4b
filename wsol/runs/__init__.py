"""What every run needs: its folder, files, lock, checkpoints and processes. Imports no room."""
