"""Made-up worlds, fakes of the ports, and grounds on real servers: below the tests and what judges from outside."""
