"""The flight recorder: what decisions were made from, within a budget of size, so that they can be made again."""
