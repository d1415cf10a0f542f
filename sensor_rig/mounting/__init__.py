"""A model looked at: what is in it, where sensors may sit, and a picture of that."""
