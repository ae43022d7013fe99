"""A site of a project's ops and documentation: pages for MkDocs, made from specs and Markdown."""
