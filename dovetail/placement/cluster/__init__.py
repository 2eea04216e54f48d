"""What placement knows of the cluster before it places any pod."""
