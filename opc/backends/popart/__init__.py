"""The PopART backend: custom ops of Graphcore's training and inference framework."""
