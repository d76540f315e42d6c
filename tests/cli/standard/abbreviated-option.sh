tool --outpu x
