"""The only rooms that see samples: inputs, designs, kernels and data sets."""
