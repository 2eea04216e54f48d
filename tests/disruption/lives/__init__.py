"""Lives of NodePools, played through the product's own steps and judged by what is true of them."""
