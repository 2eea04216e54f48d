"""The NodeClass of the cloud kwok."""
