"""Write files completely or not at all, fill in HTML templates, and find what a page depends on."""
