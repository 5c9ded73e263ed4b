"""Pictures: contact sheets, overlays, plots and reports."""
