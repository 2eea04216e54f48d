"""Traces and logs to a collector, by OpenTelemetry's protocol and its standard variables."""
