"""The parts that the nodes are made of; only the ones that talk to ROS import it."""
