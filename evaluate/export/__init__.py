"""Networks for other programs: ONNX, with a card in the form that model hubs read."""
