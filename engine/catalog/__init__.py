"""Instance types, offerings and prices as values, from bytes that observe/ fetched or the package ships."""
