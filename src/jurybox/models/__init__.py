"""Models: each module makes one kind of model answer requests.

Keys and addresses are arguments; nothing here reads the environment.
"""
