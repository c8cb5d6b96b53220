"""Which features are chosen again and again on half of the samples."""
