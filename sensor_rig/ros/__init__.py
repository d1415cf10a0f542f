"""What every node of the rig shares: spinning, quality of service, types by name, diagnostics."""
