"""A network as a graph of operators and tensors: documents, importers and transforms."""
