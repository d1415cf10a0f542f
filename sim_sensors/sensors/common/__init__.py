"""Parts that several sensors share."""
