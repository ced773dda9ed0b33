"""What a handle has on this side of the wire: to send in the background, to fetch ahead."""
