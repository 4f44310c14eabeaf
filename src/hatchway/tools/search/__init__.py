"""Finding tools instead of listing them all: categories, search, descriptions. See README.md."""
