"""What this project costs, measured: each module prints its figures, `make bench` runs them all."""
