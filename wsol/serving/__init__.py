"""A page on this machine where one drops photos and sees what the models find: `wsol serve`."""
