"""What is wrong with the timestamps of a recording: findings, each with its evidence."""
