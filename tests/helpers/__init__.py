"""What several test folders share. Import it as `from tests.helpers.configs import tiny_config`."""
