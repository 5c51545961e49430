"""Episodes in the formats of others, one file a format.

What a policy was asked and what it answered is stored as token ids; ``texts.py`` says what they read. Every
writer takes any number of episodes, holds few of them at a time, and leaves its output whole or not at all.
"""
