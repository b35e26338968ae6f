"""Write files completely or not at all, fill HTML templates, and find what a page depends on."""
