"""What it takes to run Dovetail in a cluster: charts, image, rights, custom resources, AWS."""
