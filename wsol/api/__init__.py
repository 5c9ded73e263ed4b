"""What a user calls: each function here does what a command does, returns a typed result and never prints.

`import wsol` offers all of it by name: `wsol.train`, `wsol.evaluate`, `wsol.load` and so on.
"""
