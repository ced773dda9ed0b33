"""The buffers of a handle: items to send in the background, and items that were fetched ahead."""
