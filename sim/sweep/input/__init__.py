"""What a sweep is made of: its file, and the layers of other tools' files."""
