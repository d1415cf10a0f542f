"""What the commands share: arguments, output, progress, how commands are found."""
