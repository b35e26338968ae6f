"""Write files safely, fill in HTML templates, and find out what a page depends on."""
