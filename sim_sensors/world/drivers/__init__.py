"""What moves a robot: one file per kind of driver; base.py has the contract."""
