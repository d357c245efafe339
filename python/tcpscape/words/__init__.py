"""Answers in words: a file for each kind of answer, whose functions make a screen or a sentence of it. Nothing below speaks English about results."""
