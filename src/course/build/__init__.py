"""Write files and pages: whole files, HTML from templates, and what a page depends on."""
