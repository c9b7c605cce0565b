"""The host side: the user's arrays to the bytes of a launch, and bytes back to arrays."""
