"""Why a pod waits, why a node stays, what would be done now."""
