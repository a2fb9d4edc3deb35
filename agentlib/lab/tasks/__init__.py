"""The exercises of the book, a module each: the trials, the judge, the hints."""
