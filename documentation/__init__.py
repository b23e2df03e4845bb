"""The documentation site: what its pages take from the code, how they become a site, and what runs
their blocks."""
