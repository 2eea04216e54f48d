"""Payload codecs that come with the product. Each is named by DOVETAIL_PAYLOAD_CODEC or not loaded at all."""
