tool --help >&-
