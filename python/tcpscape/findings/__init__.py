"""Findings: estimates → answers. Where the cliff is, on which side you stand, what does the damage, what to do."""
