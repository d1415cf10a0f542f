"""What is known of clocks, mountings and noise, in the words of the tools that people feed."""
