"""HTTP: one request in, one answer out, in AWS's protocols; moto answers every operation that is not answered here."""
