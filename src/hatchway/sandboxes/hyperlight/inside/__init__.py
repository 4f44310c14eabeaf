"""What runs beside and inside the micro-VM."""
