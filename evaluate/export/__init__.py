"""Networks for other programs: ONNX, or safetensors, each with a card in the form that model hubs read."""
