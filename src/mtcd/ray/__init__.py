"""The engine on Ray: parties in actors, on one machine or on a cluster of one owner.

Nothing outside this folder knows of Ray, which is imported when an engine starts.
"""
