"""Episodes in the formats of other tools, one file per format.

An episode stores the policy's prompts and answers as token ids; ``texts.py`` turns them into text. Every
writer takes any number of episodes, holds few of them at a time, and writes its output completely or not at
all.
"""
