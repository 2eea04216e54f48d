"""The reference pages of docs/reference, written from what they describe: `make reference`. A test holds them."""
