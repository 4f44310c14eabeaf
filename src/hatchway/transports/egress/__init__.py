"""How requests leave: checked against the network rules, hop by hop, on the host's side."""
