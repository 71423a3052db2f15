"""Models: one module for each kind.

Keys and addresses are arguments; nothing here reads settings from the environment.
"""
