"""CodeMode: drives one action through the gate."""
