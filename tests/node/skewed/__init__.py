"""A folder for the path of processes whose clock is off."""
